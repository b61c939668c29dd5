package main

import (
	"context"
	"errors"

	v1 "github.com/google/go-containerregistry/pkg/v1"
)

// Programs of others, each of which is also the name of its image.
const (
	driverName = "gce-pd-csi-driver"
	veleroName = "velero"
)

// others are images that no target writes unless it is asked for them.
var others = map[string]func(sources, context.Context) (image, error){driverName: sources.driver, veleroName: sources.velero}

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

// velero is Velero and its plug-in for S3 in one image. Velero's pods name the program that they run; what doesn't is the
// init container that brings the plug-in.
func (s sources) velero(context.Context) (image, error) {
	const plugin = "/plugins/velero-plugin-for-aws"
	made, err := s.unprivileged(veleroName)
	made.config.Entrypoint = []string{"/cp-plugin", plugin, "/target/velero-plugin-for-aws"}
	// Its repositories keep their settings at home.
	made.config.Env = append(made.config.Env, "HOME=/tmp")
	return made, errors.Join(err, made.files.program(s, "velero-plugin-for-aws", plugin),
		made.files.program(s, "velero-restore-helper", "/velero-restore-helper"), made.files.program(s, "cp-plugin", "/cp-plugin"))
}
