# The daemon as one static program: no shell, no other file but certificates, not as
# root. Without a key it answers its own container alone; see compose.yaml.
FROM golang:1.26 AS build
WORKDIR /src
COPY go.mod go.sum ./
RUN GOWORK=off go mod download
COPY . .
ARG VERSION= COMMIT= DATE=
RUN GOWORK=off CGO_ENABLED=0 go build -trimpath -buildvcs=false -ldflags "-s -w \
      -X github.com/palimpsest-ai/palimpsest/internal/cli.version=$VERSION \
      -X github.com/palimpsest-ai/palimpsest/internal/cli.commit=$COMMIT \
      -X github.com/palimpsest-ai/palimpsest/internal/cli.date=$DATE" -o /out/palimpsest ./cmd/palimpsest \
 && mkdir -p /out/data/palimpsest

FROM scratch
COPY --from=build /etc/ssl/certs/ca-certificates.crt /etc/ssl/certs/
COPY --from=build /out/palimpsest /palimpsest
COPY --from=build --chown=65532:65532 /out/data /data
USER 65532:65532
ENV XDG_DATA_HOME=/data PALIMPSEST_LOG_FORMAT=json
VOLUME /data
EXPOSE 7433
HEALTHCHECK --interval=10s --timeout=5s --start-period=20s CMD ["/palimpsest", "health"]
ENTRYPOINT ["/palimpsest"]
CMD ["serve"]
