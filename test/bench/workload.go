package main

import (
	"fmt"

	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/stowage-dev/stowage/test/harness/fixture"
)

type order string

const (
	// standing: volumes, Available, and claims are there before the program
	// starts. The clock starts with the first write that binds.
	standing order = "standing start"
	// volumesFirst: the program runs and the volumes are Available; then the
	// claims are created, 32 at a time.
	volumesFirst order = "volumes first"
	// claimsFirst: the program runs and the claims wait; then the volumes are
	// created, 32 at a time.
	claimsFirst order = "claims first"
)

// workload is n volumes and n claims, and in which order they come.
type workload struct {
	name  string
	order order
	// different: each volume has a size of its own, and each claim asks for
	// exactly one of them; what is created last comes in random order. Every
	// claim must end up with its volume. Otherwise all are of one size.
	different bool
	huge      bool // no volume has what is asked for
}

var workloads = []workload{
	{name: "identical", order: standing},
	{name: "different", order: standing, different: true},
	{name: "volumes-first", order: volumesFirst, different: true},
	{name: "claims-first", order: claimsFirst, different: true},
}

func (w workload) String() string { return w.name }

func (w workload) volume(i int) client.Object {
	return fixture.Volume(volumeName(i), fixture.OfClass(class), fixture.Holding(w.size(i)))
}

func (w workload) claim(i int) client.Object {
	return fixture.Claim(fixture.ClaimNamed(claimName(i)), fixture.InClass(class), fixture.Asking(w.size(i)))
}

func (w workload) size(i int) string {
	switch {
	case w.huge:
		return "1Pi"
	case w.different:
		return fmt.Sprintf("%dMi", i+1)
	default:
		return "1Gi"
	}
}

func (w workload) creation() string {
	if w.order == claimsFirst {
		return "POST persistentvolumes"
	}
	return "POST persistentvolumeclaims"
}

func (w workload) objects() (first, last func(i int) client.Object) {
	if w.order == claimsFirst {
		return w.claim, w.volume
	}
	return w.volume, w.claim
}
