# Bookmarks in a container, like Ichido in the Dockerfile beside this one: no shell, no root, and only /var/lib/bookmarks is writable.
# Build it from the root of the repository: docker build --file packaging/bookmarks.Dockerfile --tag bookmarks .
FROM rust:1-bookworm AS build
WORKDIR /src
COPY . .
RUN cargo build --profile dist --locked --package bookmarks --package ichido-cli && mkdir /state

FROM gcr.io/distroless/cc-debian12:nonroot
COPY --from=build /src/target/dist/bookmarks /usr/local/bin/bookmarks
# Checks its health, and lists, requeues and backs up what is in its store.
COPY --from=build /src/target/dist/ichido /usr/local/bin/ichido
# Owned by the user that runs it, so a new volume is too.
COPY --from=build --chown=65532:65532 /state /var/lib/bookmarks
USER 65532:65532
WORKDIR /var/lib/bookmarks
VOLUME /var/lib/bookmarks
ENV BOOKMARKS_STORE=sqlite:/var/lib/bookmarks/bookmarks.db
EXPOSE 4190
HEALTHCHECK --interval=30s --timeout=10s --start-period=10s CMD ["/usr/local/bin/ichido", "healthcheck", "--server", "http://127.0.0.1:4190"]
ENTRYPOINT ["/usr/local/bin/bookmarks"]
# Add a person first: otherwise the first start adds one and prints the sign-in link, with its token, into the log.
CMD ["serve", "--listen", "0.0.0.0:4190"]
