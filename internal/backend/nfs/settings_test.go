package nfs

import (
	"errors"
	"strings"
	"testing"

	stowagev1alpha1 "github.com/stowage-dev/stowage/api/v1alpha1"
	"github.com/stowage-dev/stowage/internal/backend"
	"github.com/stowage-dev/stowage/internal/backend/nfs/tree"
)

func TestASpecIsRead(t *testing.T) {
	got, err := settingsFrom(stowagev1alpha1.NFSBackend{
		Server: "fd00::7", Path: "/exports/team a", NFSVersion: "4.1",
		MountOptions: []stowagev1alpha1.MountOption{"noatime", "port=2050", "mountport=2051"},
	})
	must(t, err)
	if got.access != (tree.Access{Mode: 0o770}) || got.onDelete != stowagev1alpha1.NFSDelete {
		t.Errorf("the defaults are %+v, %s", got.access, got.onDelete)
	}
	if got.port != 2050 || got.mountPort != 2051 || got.nodeOptions() != "nfsvers=4.1,noatime,port=2050,mountport=2051" {
		t.Errorf("the options are read as %d, %d, %s", got.port, got.mountPort, got.nodeOptions())
	}
}

func TestASpecThatCarriesMoreThanItShowsIsRefused(t *testing.T) {
	for name, test := range map[string]struct {
		change func(*stowagev1alpha1.NFSBackend)
		advice string
	}{
		"a server with a path":      {onServer("host:/etc"), "is no host name"},
		"a server that's an option": {onServer("-o"), "is no host name"},
		"a server with a newline":   {onServer("host\nother"), "is no host name"},
		"a server with a comma":     {onServer("host,other"), "is no host name"},
		"a server with a command":   {onServer("$(reboot)"), "is no host name"},
		"no server":                 {onServer(""), "is no host name"},
		"a relative path":           {atPath("srv"), "use an absolute one"},
		"the root":                  {atPath("/"), "use an absolute one"},
		"a path that climbs":        {atPath("/srv/../etc"), "use an absolute one"},
		"a path that ends so":       {atPath("/srv/.."), "use an absolute one"},
		"a path with an option":     {atPath("/srv,exec"), "use an absolute one"},
		"a path with a newline":     {atPath("/srv\n/etc"), "use an absolute one"},
		"a path with a command":     {atPath("/srv;reboot"), "what a shell reads"},
		"a path with a quote":       {atPath("/srv'"), "what a shell reads"},
		"two options in one":        {withOption("ro,exec"), "give each on its own"},
		"an option with a newline":  {withOption("ro\nexec"), "give each on its own"},
		"an option with a command":  {withOption("ro;reboot"), "give each on its own"},
		"an empty option":           {withOption(""), "give each on its own"},
		"a version with an option":  {func(s *stowagev1alpha1.NFSBackend) { s.NFSVersion = "4,exec" }, "give each on its own"},
		"a port by name":            {withOption("port=nfs"), "use a number"},
		"a port beyond all":         {withOption("mountport=70000"), "use a number"},
		"a mode by letters":         {withMode("rwx"), "octal digits"},
		"a mode with an option":     {withMode("770,"), "octal digits"},
		"a mode with a newline":     {withMode("770\n"), "octal digits"},
		"a mode that isn't octal":   {withMode("0980"), "octal digits"},
		"a negative owner":          {func(s *stowagev1alpha1.NFSBackend) { s.Access.UID = -1 }, "use a number"},
		"a group that means none":   {func(s *stowagev1alpha1.NFSBackend) { s.Access.GID = 1<<32 - 1 }, "use a number"},
		"an unknown end":            {onDelete("Shred"), "use Delete, Archive or Retain"},
	} {
		t.Run(name, func(t *testing.T) {
			spec := stowagev1alpha1.NFSBackend{Server: "nfs.example.com", Path: "/srv"}
			test.change(&spec)
			if _, err := settingsFrom(spec); !errors.Is(err, backend.Invalid) || !strings.Contains(err.Error(), test.advice) {
				t.Errorf("the answer is %v", err)
			}
		})
	}
}

func onServer(name string) func(*stowagev1alpha1.NFSBackend) {
	return func(spec *stowagev1alpha1.NFSBackend) { spec.Server = name }
}

func atPath(text string) func(*stowagev1alpha1.NFSBackend) {
	return func(spec *stowagev1alpha1.NFSBackend) { spec.Path = stowagev1alpha1.AbsolutePath(text) }
}

func withOption(text string) func(*stowagev1alpha1.NFSBackend) {
	return func(spec *stowagev1alpha1.NFSBackend) {
		spec.MountOptions = []stowagev1alpha1.MountOption{stowagev1alpha1.MountOption(text)}
	}
}

func withMode(text string) func(*stowagev1alpha1.NFSBackend) {
	return func(spec *stowagev1alpha1.NFSBackend) { spec.Access.Mode = text }
}
