//! How people tell this server from others: its name and its colour.

/// Maximum characters of a name, so the header has room for it.
pub(crate) const MAX_NAME_CHARS: usize = 40;

/// The colours, by their names in the configuration.
pub(crate) const COLOURS: [(&str, InstanceColour); 6] = [
    ("blue", InstanceColour::Blue),
    ("green", InstanceColour::Green),
    ("orange", InstanceColour::Orange),
    ("red", InstanceColour::Red),
    ("purple", InstanceColour::Purple),
    ("grey", InstanceColour::Grey),
];

/// The name and the colour of a server.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct Instance {
    /// `None` shows the host of its address.
    pub(crate) name: Option<String>,
    pub(crate) colour: InstanceColour,
}

/// A colour that can be read in the light and in the dark.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) enum InstanceColour {
    #[default]
    Blue,
    Green,
    Orange,
    Red,
    Purple,
    Grey,
}

impl InstanceColour {
    /// Returns the colour with this name.
    pub(crate) fn parse(name: &str) -> Option<Self> {
        COLOURS.iter().find(|(known, _)| *known == name).map(|(_, colour)| *colour)
    }

    /// Returns its name.
    pub(crate) fn name(self) -> &'static str {
        COLOURS.iter().find(|(_, colour)| *colour == self).map_or("", |(name, _)| name)
    }

    /// Returns the tone of the dashboard's style sheet that has this colour.
    pub(crate) const fn tone(self) -> &'static str {
        match self {
            Self::Blue => "calm",
            Self::Green => "good",
            Self::Orange => "warn",
            Self::Red => "bad",
            Self::Purple => "doubt",
            Self::Grey => "quiet",
        }
    }
}
