#!/bin/sh
# A deploy hook of certbot, /etc/letsencrypt/renewal-hooks/deploy/siprtmp.sh, mode 755: gives a
# renewed certificate to the gateway and makes it read it again; docs/3-howto/certificates.md tells
# how.  certbot runs it as root, and says in RENEWED_LINEAGE where the files are.

set -eu
folder=${SIPRTMP_FOLDER:-/etc/siprtmp} group=${SIPRTMP_GROUP:-siprtmp}

# The key is for root and the gateway's group alone.  Each file is renamed into its place when it is
# whole, so a gateway that starts meanwhile reads no half of one.
install -m 640 -g "$group" "$RENEWED_LINEAGE/privkey.pem" "$folder/siprtmp.key.new"
install -m 644 "$RENEWED_LINEAGE/fullchain.pem" "$folder/siprtmp.pem.new"
mv "$folder/siprtmp.key.new" "$folder/siprtmp.key"
mv "$folder/siprtmp.pem.new" "$folder/siprtmp.pem"

systemctl reload siprtmp
