ARG GO=1.26
ARG DEBIAN=trixie

FROM golang:${GO}-trixie AS build
WORKDIR /src
COPY go.mod go.sum ./
RUN go mod download
COPY vmop vmop
COPY internal internal
COPY frontends frontends
ARG VERSION
RUN CGO_ENABLED=0 go build -trimpath -ldflags="-s -X github.com/vmop/sdk/internal/version.stamped=${VERSION}" -o /out/vmop-runner ./frontends/runner

# Debian 13's firmware has the 4 MiB flash layout only. Machines whose UEFI variables
# have that of 2 MiB, such as older ones of VM-Operator's, go on with Debian 12's.
FROM debian:bookworm-slim AS ovmf
ARG SNAPSHOT
RUN test -z "$SNAPSHOT" || { rm -rf /etc/apt/sources.list /etc/apt/sources.list.d/*; echo "deb [check-valid-until=no] $SNAPSHOT bookworm main" >/etc/apt/sources.list; } \
 && apt-get update \
 && DEBIAN_FRONTEND=noninteractive apt-get install -y --no-install-recommends ovmf \
 && rm -rf /var/lib/apt/lists/*

FROM debian:${DEBIAN}-slim
ARG DEBIAN
ARG SNAPSHOT
# From Debian 13 on, SPICE and virtiofsd are in packages of their own, which Debian 12
# does not have.
# What has setcap stays: SPICE depends on it.
# The base image is that of a fixed day, hence the upgrade. Logs, backups and the days on
# which users were made differ between two builds, and nobody reads them.
RUN test -z "$SNAPSHOT" || { rm -rf /etc/apt/sources.list /etc/apt/sources.list.d/*; echo "deb [check-valid-until=no] $SNAPSHOT $DEBIAN main" >/etc/apt/sources.list; } \
 && apt-get update \
 && DEBIAN_FRONTEND=noninteractive apt-get upgrade -y --no-install-recommends \
 && DEBIAN_FRONTEND=noninteractive apt-get install -y --no-install-recommends \
    qemu-system-x86 qemu-utils qemu-block-extra ovmf swtpm ca-certificates libcap2-bin \
    $(apt-cache pkgnames qemu-system-modules-spice) $(apt-cache pkgnames virtiofsd) \
 && rm -rf /var/lib/apt/lists/* /var/cache/apt/*.bin /var/cache/debconf/*-old /var/cache/ldconfig/aux-cache \
    /var/lib/dpkg/*-old /var/log/apt /var/log/*.log /etc/group- /etc/gshadow- /etc/passwd- /etc/shadow- \
 && sed -i -E 's/^([^:]*:[^:]*):[0-9]*:/\1::/' /etc/shadow \
 && chmod 755 /usr/lib/qemu/qemu-bridge-helper \
 && setcap cap_net_admin+ep /usr/lib/qemu/qemu-bridge-helper \
 && mkdir -p /etc/qemu /opt/vmrunner/templates \
 && echo "allow all" > /etc/qemu/bridge.conf \
 && chmod 644 /etc/qemu/bridge.conf
COPY --from=ovmf /usr/share/OVMF/OVMF_CODE.fd /usr/share/OVMF/OVMF_VARS.fd /usr/share/OVMF/OVMF_CODE.ms.fd /usr/share/OVMF/OVMF_VARS.ms.fd /usr/share/OVMF/
COPY --from=build /out/vmop-runner /usr/local/bin/vmop-runner
USER 65532:65532
ENTRYPOINT ["/usr/local/bin/vmop-runner"]
