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
RUN CGO_ENABLED=0 go build -trimpath -ldflags="-s -X github.com/vmop/sdk/internal/version.stamped=${VERSION}" -o /out/vm-operator ./frontends/operator

FROM debian:${DEBIAN}-slim
COPY --from=build /out/vm-operator /usr/local/bin/vm-operator
USER 65532:65532
ENTRYPOINT ["/usr/local/bin/vm-operator"]
