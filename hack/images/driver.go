package main

import (
	"context"

	v1 "github.com/google/go-containerregistry/pkg/v1"
)

// driverName is the program of Google's CSI driver.
const driverName = "gce-pd-csi-driver"

// driver is Google's CSI driver, with Debian's programs that it runs on a node. What it has
// of udev's is the testbed's to add.
func (s sources) driver(context.Context) (image, error) {
	files := userFiles()
	files.mergeFolders()
	if err := files.addPackages(s, append([]string{"e2fsprogs", "mount", "util-linux"}, shell...)...); err != nil {
		return image{}, err
	}
	files.link("/bin/sh", "dash")
	return image{files, v1.Config{Entrypoint: []string{"/" + driverName}, Env: []string{searchPath}, WorkingDir: "/"}},
		files.program(s, driverName, "/"+driverName)
}
