ARG GO=1.26
ARG ALPINE=3.23

FROM golang:${GO}-alpine${ALPINE} AS build
WORKDIR /src
COPY go.mod go.sum ./
RUN go mod download
COPY vmop vmop
COPY internal internal
COPY frontends frontends
ARG VERSION
RUN CGO_ENABLED=0 go build -trimpath -ldflags="-s -X github.com/vmop/sdk/internal/version.stamped=${VERSION}" -o /out/vmop-runner ./frontends/runner

FROM alpine:${ALPINE}
# The modules are what machines have: the package qemu-modules has those of
# desktops too. Alpine's bridge helper and its configuration are for root and a
# group only, hence the permissions.
RUN apk add --no-cache \
    qemu-system-x86_64 qemu-img qemu-block-curl qemu-bridge-helper \
    qemu-ui-spice-core qemu-ui-opengl qemu-chardev-spice qemu-audio-spice \
    qemu-hw-display-virtio-vga qemu-hw-display-virtio-gpu qemu-hw-display-virtio-gpu-pci \
    qemu-hw-usb-host qemu-hw-usb-redirect \
    ovmf swtpm virtiofsd ca-certificates \
 && apk add --no-cache --virtual .setcap libcap-setcap \
 && chmod 755 /usr/lib/qemu/qemu-bridge-helper \
 && setcap cap_net_admin+ep /usr/lib/qemu/qemu-bridge-helper \
 && apk del .setcap \
 && mkdir -p /etc/qemu /opt/vmrunner/templates \
 && echo "allow all" > /etc/qemu/bridge.conf \
 && chmod 644 /etc/qemu/bridge.conf
COPY --from=build /out/vmop-runner /usr/local/bin/vmop-runner
USER 65532:65532
ENTRYPOINT ["/usr/local/bin/vmop-runner"]
