//! Finds numbers that JSON does not have.
//!
//! `serde_json` writes NaN and infinity as `null`, without an error. The handler would then fail to read its message, or read
//! another value than was sent.

use serde::Serialize;
use serde::ser::{
    Error as _, SerializeMap, SerializeSeq, SerializeStruct, SerializeStructVariant, SerializeTuple,
    SerializeTupleStruct, SerializeTupleVariant, Serializer,
};
use serde_json::Error;

/// Fails if a payload contains NaN or an infinite number.
pub(super) fn check(payload: &impl Serialize) -> Result<(), Error> {
    payload.serialize(FiniteCheck)
}

/// A serializer that writes nothing.
struct FiniteCheck;

/// Accepts values of these types.
macro_rules! accept {
    ($($name:ident($($type:ty),*)),+ $(,)?) => {
        $(fn $name(self $(, _: $type)*) -> Result<(), Error> {
            Ok(())
        })+
    };
}

/// Checks the members of a value, one by one.
macro_rules! each_member {
    ($($kind:ident::$name:ident($($key:ty)?)),+ $(,)?) => { $(
        impl $kind for FiniteCheck {
            type Ok = ();
            type Error = Error;

            fn $name<T: Serialize + ?Sized>(&mut self, $(_: $key,)? value: &T) -> Result<(), Error> {
                value.serialize(Self)
            }

            fn end(self) -> Result<(), Error> {
                Ok(())
            }
        }
    )+ };
}

/// Checks values with members by the same type.
macro_rules! with_members {
    ($($name:ident($($type:ty),*) -> $kind:ident),+ $(,)?) => {
        $(fn $name(self $(, _: $type)*) -> Result<Self::$kind, Error> {
            Ok(self)
        })+
    };
}

impl Serializer for FiniteCheck {
    type Ok = ();
    type Error = Error;
    type SerializeSeq = Self;
    type SerializeTuple = Self;
    type SerializeTupleStruct = Self;
    type SerializeTupleVariant = Self;
    type SerializeMap = Self;
    type SerializeStruct = Self;
    type SerializeStructVariant = Self;

    fn serialize_f32(self, value: f32) -> Result<(), Error> {
        self.serialize_f64(value.into())
    }

    fn serialize_f64(self, value: f64) -> Result<(), Error> {
        if value.is_finite() {
            return Ok(());
        }
        Err(Error::custom("it contains NaN or an infinite number, which JSON does not have; use an `Option`"))
    }

    accept!(
        serialize_bool(bool),
        serialize_i8(i8),
        serialize_i16(i16),
        serialize_i32(i32),
        serialize_i64(i64),
        serialize_i128(i128),
        serialize_u8(u8),
        serialize_u16(u16),
        serialize_u32(u32),
        serialize_u64(u64),
        serialize_u128(u128),
        serialize_char(char),
        serialize_str(&str),
        serialize_bytes(&[u8]),
        serialize_none(),
        serialize_unit(),
        serialize_unit_struct(&'static str),
        serialize_unit_variant(&'static str, u32, &'static str),
    );

    fn collect_str<T: std::fmt::Display + ?Sized>(self, _: &T) -> Result<(), Error> {
        Ok(())
    }

    fn serialize_some<T: Serialize + ?Sized>(self, value: &T) -> Result<(), Error> {
        value.serialize(self)
    }

    fn serialize_newtype_struct<T: Serialize + ?Sized>(
        self,
        _: &'static str,
        value: &T,
    ) -> Result<(), Error> {
        value.serialize(self)
    }

    fn serialize_newtype_variant<T: Serialize + ?Sized>(
        self,
        _: &'static str,
        _: u32,
        _: &'static str,
        value: &T,
    ) -> Result<(), Error> {
        value.serialize(self)
    }

    with_members!(
        serialize_seq(Option<usize>) -> SerializeSeq,
        serialize_tuple(usize) -> SerializeTuple,
        serialize_tuple_struct(&'static str, usize) -> SerializeTupleStruct,
        serialize_tuple_variant(&'static str, u32, &'static str, usize) -> SerializeTupleVariant,
        serialize_map(Option<usize>) -> SerializeMap,
        serialize_struct(&'static str, usize) -> SerializeStruct,
        serialize_struct_variant(&'static str, u32, &'static str, usize) -> SerializeStructVariant,
    );
}

each_member!(
    SerializeSeq::serialize_element(),
    SerializeTuple::serialize_element(),
    SerializeTupleStruct::serialize_field(),
    SerializeTupleVariant::serialize_field(),
    SerializeStruct::serialize_field(&'static str),
    SerializeStructVariant::serialize_field(&'static str),
);

impl SerializeMap for FiniteCheck {
    type Ok = ();
    type Error = Error;

    fn serialize_key<T: Serialize + ?Sized>(&mut self, key: &T) -> Result<(), Error> {
        key.serialize(Self)
    }

    fn serialize_value<T: Serialize + ?Sized>(&mut self, value: &T) -> Result<(), Error> {
        value.serialize(Self)
    }

    fn end(self) -> Result<(), Error> {
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeMap;

    use super::*;

    #[derive(Serialize)]
    struct Named<T> {
        member: Option<T>,
    }

    #[derive(Serialize)]
    struct Pair(&'static str, f64);

    #[derive(Serialize)]
    struct Alone(f64);

    #[derive(Serialize)]
    enum AnyVariant {
        Unit,
        One(f64),
        Two(f64, f64),
        Named { member: f64 },
    }

    #[test]
    fn number_that_json_lacks_is_found_wherever_it_is() {
        for number in [f64::NAN, f64::INFINITY, f64::NEG_INFINITY, 1.5] {
            let checks = [
                check(&number),
                check(&Named { member: Some(vec![1.0, number]) }),
                check(&Pair("a", number)),
                check(&Alone(number)),
                check(&(1, "a", number)),
                check(&BTreeMap::from([("a", number)])),
                check(&AnyVariant::One(number)),
                check(&AnyVariant::Two(1.0, number)),
                check(&AnyVariant::Named { member: number }),
            ];
            for (index, found) in checks.into_iter().enumerate() {
                assert_eq!(found.is_ok(), number.is_finite(), "{index}: {number}");
            }
        }
        check(&(AnyVariant::Unit, Named::<u8> { member: None }, true, 'a', "b", 1_i128, [1_u8], ())).unwrap();
    }
}
