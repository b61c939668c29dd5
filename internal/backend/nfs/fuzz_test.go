package nfs

import (
	"errors"
	"path"
	"strings"
	"testing"

	"k8s.io/apimachinery/pkg/api/resource"
	"k8s.io/apimachinery/pkg/types"

	stowagev1alpha1 "github.com/stowage-dev/stowage/api/v1alpha1"
	"github.com/stowage-dev/stowage/internal/backend"
	"github.com/stowage-dev/stowage/internal/backend/nfs/naming"
	nfsshare "github.com/stowage-dev/stowage/internal/backend/nfs/share"
)

// maxMessage is how long a message about what others wrote may be.
const maxMessage = 2000

func mustBeShort(t *testing.T, err error) {
	t.Helper()
	if err != nil && len(err.Error()) > maxMessage {
		t.Errorf("a message has %d bytes: %.300s", len(err.Error()), err)
	}
}

func FuzzRecord(f *testing.F) {
	f.Add([]byte(forged(`"directory": "a-data-1"`)))
	f.Add([]byte(forged(`"directory": "../canary", "deletion": "Archive", "retained": true`)))
	f.Add([]byte(forged(`"backend": "` + strings.Repeat("b", 10*maxObjectName) + `"`)))
	f.Add([]byte(forged(`"claim": {"uid": ` + strings.Repeat("1", maxRecord) + `}`)))
	f.Add([]byte(strings.Repeat(`{"claim":`, maxRecord/9)))
	f.Add([]byte(`{"id": "pvc-1", "claim": {"namespace": "..", "name": "/", "uid": "1"}, "cluster": "cluster-1", "backend": "share"}`))
	opened := &nfsBackend{name: "share", cluster: string(thisCluster), share: &nfsshare.Share{Server: &nfsshare.Server{}}}
	f.Fuzz(func(t *testing.T, data []byte) {
		found, err := recordFrom(data, "pvc-1")
		mustBeShort(t, err)
		if err != nil {
			if !errors.Is(err, backend.Conflict) {
				t.Errorf("it is refused with %v", err)
			}
			return
		}
		mustBeShort(t, opened.checkOwner(found))
		mustBeShort(t, opened.checkResumable(found, requestFor("a", "data", "1")))
		mustBeShort(t, naming.Check(found.Directory))
		if name := archiveName(*found); len(name)+len(recordSuffix) > naming.MaxPart || strings.ContainsAny(name, "/\x00") || strings.HasPrefix(name, ".") {
			t.Errorf("it is archived as %q", name)
		}
	})
}

func FuzzDirectory(f *testing.F) {
	for _, directory := range []string{"a-data-1", "a/b/c", "../canary", "/etc", ".stowage", "a//b", "a/./b", strings.Repeat("a/", 1000) + "a"} {
		f.Add(directory)
	}
	f.Fuzz(func(t *testing.T, directory string) {
		err := naming.Check(directory)
		mustBeShort(t, err)
		if err == nil {
			mustBeInShare(t, directory)
		}
	})
}

// mustBeInShare fails for a directory that isn't below the share, or is ours.
func mustBeInShare(t *testing.T, directory string) {
	t.Helper()
	if path.Clean("/"+directory) != "/"+directory || strings.HasPrefix(directory, ".") || len(directory) > naming.MaxLength {
		t.Errorf("%q may be a volume's", directory)
	}
	// The way up from its mark, as findMark goes.
	steps := 0
	for place := directories + "/" + directory; place != directories; place = path.Dir(place) {
		steps++
		if steps > naming.MaxLength {
			t.Fatalf("%q is below nothing", directory)
		}
	}
}

func FuzzTemplate(f *testing.F) {
	f.Add("", "team-a", "data", "1", "k", "v")
	f.Add("{{namespace}}/{{name}}-{{labels.k}}", "team-a", "data", "1", "k", "../../v")
	f.Add("{{annotations.k}}", "a", "b", "c", "k", strings.Repeat("../", 100))
	f.Add("{{labels.k}}/{{annotations.k}}", "a", "b", "c", "k", strings.Repeat("v/", 1000))
	f.Add("{{{{name}}}}", "a", "{{uid}}", "c", "", "")
	f.Add(strings.Repeat("{{name}}/", 500), "a", ".", "c", "", "")
	f.Add("{{unknown"+strings.Repeat("n", 3000)+"}}", "a", "b", "c", "", "")
	f.Fuzz(func(t *testing.T, template, namespace, name, uid, key, value string) {
		request := backend.Request{
			Claim:  stowagev1alpha1.ClaimReference{Namespace: namespace, Name: name, UID: types.UID(uid)},
			Labels: map[string]string{key: value}, Annotations: map[string]string{key: value},
		}
		directory, err := naming.Directory(template, request)
		mustBeShort(t, err)
		if err == nil {
			mustBeInShare(t, directory)
		} else if !errors.Is(err, backend.Invalid) {
			t.Errorf("it is refused with %v", err)
		}
	})
}

func FuzzSettings(f *testing.F) {
	f.Add("nfs.example.com", "/srv/volumes", "port=2049,vers=4.1", "0770")
	f.Add("fd00::7", "/srv/../etc", "a,b=c;d", "1777")
	f.Add(strings.Repeat("a", 100_000), "/", strings.Repeat("o,", 100_000), strings.Repeat("7", 100_000))
	f.Fuzz(func(t *testing.T, host, share, options, mode string) {
		checked, err := settingsForRecycling(backend.Recycling{Server: host, Path: share, MountOptions: []string{options}})
		mustBeShort(t, err)
		if err == nil && (path.Clean(checked.path) != checked.path || strings.ContainsAny(checked.nodeOptions(), " \t\n\\\"'") || checked.server == "") {
			t.Errorf("%q of %q with %q is taken", checked.path, checked.server, checked.nodeOptions())
		}
		mustBeShort(t, new(settings).setAccess(stowagev1alpha1.NFSAccess{Mode: mode}))
	})
}

// A claim's owner writes labels and annotations, of up to 256 KiB.
func TestTextOfUsersIsShortenedInMessages(t *testing.T) {
	long := strings.Repeat("../", 10*(256<<10)/3)
	request := requestFor("a", "data", "1")
	request.Annotations = map[string]string{"k": long}
	request.Capacity = resource.MustParse("1Mi")
	_, err := naming.Directory("{{annotations.k}}", request)
	mustBeShort(t, err)
	if !errors.Is(err, backend.Invalid) {
		t.Errorf("it is refused with %v", err)
	}
}
