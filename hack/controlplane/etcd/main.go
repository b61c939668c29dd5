// Command etcd is the etcd server, built from its Go module: the release
// binary is nothing more than this call.
package main

import (
	"os"

	"go.etcd.io/etcd/server/v3/etcdmain"
)

func main() {
	etcdmain.Main(os.Args)
}
