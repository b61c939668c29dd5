// Command images is `make image-archives` and `make images-oci`: it writes container images as archives that
// any container runtime loads, with no container engine and no registry, from programs
// that were built and from Debian packages that are installed here. The same programs
// and packages give the same bytes.
//
// It never downloads anything. What goes into the images is the Dockerfile's to say.
package main

import (
	"context"
	"flag"
	"fmt"
	"maps"
	"os"
	"path/filepath"
	"runtime"
	"slices"

	"github.com/google/go-containerregistry/pkg/name"
	"github.com/google/go-containerregistry/pkg/v1/tarball"
)

func main() {
	from := sources{root: "/", arch: runtime.GOARCH}
	flag.StringVar(&from.programs, "programs", "bin/images/programs", "folder of the static programs")
	flag.StringVar(&from.dockerfile, "dockerfile", "Dockerfile", "file that says which Debian packages the node agent needs")
	out := flag.String("out", "bin/images", "folder to write to")
	prefix := flag.String("prefix", "localhost/stowage-", "what the images' names begin with")
	tag := flag.String("tag", "e2e", "tag of the images")
	version := flag.String("release", "", "write the images of this version instead, for the architectures that are arguments, as OCI's layout, and SBOMs")
	single := flag.String("image", "", "write one image of others' programs instead: "+driverName+" or "+veleroName)
	list := flag.String("for", "", "write stand-ins instead, for the images that this file lists as e2e.test --list-images does, into upstream.tar")
	flag.Parse()
	if *list != "" {
		archive := filepath.Join(*out, "upstream.tar")
		report(archive, writeStandIns(context.Background(), from, *list, archive))
		return
	}
	if *version != "" {
		for _, which := range released {
			pinned, err := release(context.Background(), "bin/images", *out, *prefix+which+":"+*version, flag.Args())
			report(which, err)
			fmt.Println(pinned)
		}
		return
	}
	chosen := slices.Sorted(maps.Keys(makers))
	if *single != "" {
		chosen = []string{*single}
	}
	for _, which := range chosen {
		archive := filepath.Join(*out, which+".tar")
		report(archive, write(context.Background(), from, which, *prefix+which+":"+*tag, archive))
	}
}

func report(archive string, err error) {
	if err != nil {
		fmt.Fprintf(os.Stderr, "images: making %s: %v\n", archive, err)
		os.Exit(1)
	}
}

// whole writes an archive under another name first: one that is cut off is never taken for whole.
func whole(archive string, write func(part string) error) error {
	if err := write(archive + ".part"); err != nil {
		return err
	}
	return os.Rename(archive+".part", archive)
}

// write writes an archive with one image.
func write(ctx context.Context, from sources, which, called, archive string) error {
	tag, err := name.NewTag(called)
	if err != nil {
		return err
	}
	maker, usual := makers[which]
	if !usual {
		maker = others[which]
	}
	if maker == nil {
		return fmt.Errorf("no image has this name")
	}
	made, err := maker(from, ctx)
	if err != nil {
		return err
	}
	built, err := made.build(from.arch)
	if err != nil {
		return err
	}
	err = whole(archive, func(part string) error { return tarball.WriteToFile(part, tag, built) })
	if err != nil {
		return err
	}
	info, err := os.Stat(archive)
	if err == nil {
		fmt.Printf("images: %s, %.1f MB, is %s\n", archive, float64(info.Size())/1e6, called)
	}
	return err
}
