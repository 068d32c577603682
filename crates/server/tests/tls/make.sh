#!/usr/bin/env bash
# Makes the certificate that the tests of TLS serve and trust, anew.
set -euo pipefail
cd "$(dirname "$0")"
openssl req -x509 -newkey ec -pkeyopt ec_paramgen_curve:prime256v1 -nodes -days 36500 -keyout key.pem -out certificate.pem \
	-subj /CN=localhost -addext 'subjectAltName=DNS:localhost,IP:127.0.0.1' \
	-addext basicConstraints=critical,CA:FALSE -addext extendedKeyUsage=serverAuth
