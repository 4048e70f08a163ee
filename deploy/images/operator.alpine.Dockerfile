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
RUN CGO_ENABLED=0 go build -trimpath -ldflags="-s -X github.com/vmop/sdk/internal/version.stamped=${VERSION}" -o /out/vm-operator ./frontends/operator

FROM alpine:${ALPINE}
COPY --from=build /out/vm-operator /usr/local/bin/vm-operator
USER 65532:65532
ENTRYPOINT ["/usr/local/bin/vm-operator"]
