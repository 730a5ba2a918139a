#!/bin/sh
# Prints a kubeconfig for the ServiceAccount that deploy/base makes, for a console outside the cluster:
#   deploy/kubeconfig.sh [HOURS] >kubeconfig
#
# It is made by kubectl with the rights of whoever runs this, for the cluster of the current context.
# All data is inline. Its token ends after HOURS, 720 where none is given, or earlier where the API
# server allows no longer; deleting the ServiceAccount ends it at once.
set -eu
hours=${1:-720}
case $hours in
'' | *[!0-9]*)
    echo "usage: deploy/kubeconfig.sh [HOURS] >kubeconfig" >&2
    exit 2
    ;;
esac

of_cluster() { # FIELD
    kubectl config view --raw --minify --flatten --output "jsonpath={.clusters[0].cluster.$1}"
}

server=$(of_cluster server)
authority=$(of_cluster certificate-authority-data)
name=$(of_cluster tls-server-name)
token=$(kubectl create token gpuadmin --namespace gpuadmin --duration "${hours}h")

cat <<CONFIG
apiVersion: v1
kind: Config
current-context: gpuadmin
clusters:
  - name: cluster
    cluster:
      server: "$server"
CONFIG
[ -z "$authority" ] || echo "      certificate-authority-data: $authority"
[ -z "$name" ] || echo "      tls-server-name: \"$name\""
cat <<CONFIG
users:
  - name: gpuadmin
    user:
      token: $token
contexts:
  - name: gpuadmin
    context:
      cluster: cluster
      user: gpuadmin
      namespace: gpuadmin
CONFIG
