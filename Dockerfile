# Three images of one build: the manager, which is unprivileged and holds nothing but
# its binary, the node agent, which needs the tools that it mounts with, and the mock
# of Google's cloud, for those who want to try it.
#
#   docker build --target manager    -t stowage-manager .
#   docker build --target node-agent -t stowage-node-agent .
#   docker build --target gce-mock   -t stowage-gce-mock .

FROM --platform=$BUILDPLATFORM golang:1.26-bookworm AS build
WORKDIR /src
# Modules first: they change more rarely than the code, so the layer is kept.
COPY go.mod go.sum ./
RUN go mod download
COPY api/ api/
COPY cmd/ cmd/
COPY controllers/ controllers/
COPY internal/ internal/
ARG TARGETOS=linux
ARG TARGETARCH=amd64
ARG VERSION=unknown
# Without paths, build ids and debug information the same sources give the same
# bytes, wherever they are built. Without gRPC's pages for debugging, unused methods are left out.
RUN CGO_ENABLED=0 GOOS=$TARGETOS GOARCH=$TARGETARCH \
    go build -trimpath -buildvcs=false -tags=grpcnotrace \
      -ldflags "-s -w -buildid= -X github.com/stowage-dev/stowage/internal/program.version=$VERSION" \
      -o /out/ ./cmd/manager ./cmd/node-agent ./cmd/stowage-mount ./cmd/gce-mock

FROM gcr.io/distroless/static-debian12:nonroot AS manager
COPY --from=build /out/manager /manager
USER 65532:65532
ENTRYPOINT ["/manager"]

FROM gcr.io/distroless/static-debian12:nonroot AS gce-mock
COPY --from=build /out/gce-mock /gce-mock
USER 65532:65532
ENTRYPOINT ["/gce-mock"]

FROM debian:bookworm-slim AS node-agent
# blkid; mkfs, fsck and growth of ext4 and xfs. The agent mounts by itself: mount, losetup
# and xfs_repair are for people who mend something by hand.
RUN apt-get update \
 && apt-get install --yes --no-install-recommends \
      ca-certificates e2fsprogs mount util-linux xfsprogs \
 && rm -rf /var/lib/apt/lists/* /var/log/* /var/cache/ldconfig/aux-cache
# The agent finds stowage-mount in its own folder.
COPY --from=build /out/node-agent /out/stowage-mount /usr/local/bin/
ENTRYPOINT ["/usr/local/bin/node-agent"]
