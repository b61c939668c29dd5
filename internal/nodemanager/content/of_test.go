package content_test

import (
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"

	"github.com/stowage-dev/stowage/internal/nodemanager/content"
)

func describe(files content.Files) string {
	lines := make([]string, 0, len(files))
	for _, path := range slices.Sorted(maps.Keys(files)) {
		owner := "root"
		if files[path].Owner != nil {
			owner = fmt.Sprint(*files[path].Owner)
		}
		lines = append(lines, fmt.Sprintf("%s %#o %s %s", path, files[path].Mode, owner, files[path].Data))
	}
	return strings.Join(lines, "\n")
}

func ofConfigMap(name string, items ...corev1.KeyToPath) corev1.VolumeSource {
	return corev1.VolumeSource{ConfigMap: &corev1.ConfigMapVolumeSource{
		LocalObjectReference: corev1.LocalObjectReference{Name: name}, Items: items,
	}}
}

func ofSecret(name string, items ...corev1.KeyToPath) corev1.VolumeSource {
	return corev1.VolumeSource{Secret: &corev1.SecretVolumeSource{SecretName: name, Items: items}}
}

func of(sources ...corev1.VolumeProjection) corev1.VolumeSource {
	return corev1.VolumeSource{Projected: &corev1.ProjectedVolumeSource{Sources: sources}}
}

func configMap(name string, items ...corev1.KeyToPath) corev1.VolumeProjection {
	return corev1.VolumeProjection{ConfigMap: &corev1.ConfigMapProjection{LocalObjectReference: corev1.LocalObjectReference{Name: name}, Items: items}}
}

func secret(name string, items ...corev1.KeyToPath) corev1.VolumeProjection {
	return corev1.VolumeProjection{Secret: &corev1.SecretProjection{LocalObjectReference: corev1.LocalObjectReference{Name: name}, Items: items}}
}

func item(key, path string) corev1.KeyToPath { return corev1.KeyToPath{Key: key, Path: path} }

func TestAllKeysOfAnObjectAreProjectedByTheirNames(t *testing.T) {
	mustShow(t, ofConfigMap("app"), "a.conf 0644 root a", "b.conf 0644 root b", "logo 0644 root \x00\x01")
	mustShow(t, ofSecret("tls"), "tls.crt 0644 root cert", "tls.key 0644 root key")
	mustShow(t, of(configMap("folder"), secret("tls")), "etc 0644 root a file", "tls.crt 0644 root cert", "tls.key 0644 root key")
}

//proves:objects/items
func TestOnlyItemsAreProjectedAtTheirPaths(t *testing.T) {
	mustShow(t, ofConfigMap("app", item("a.conf", "etc/./a"), item("logo", "logo//")), "etc/a 0644 root a", "logo 0644 root \x00\x01")
	mustShow(t, ofSecret("tls", item("tls.key", "deep/..down/key")), "deep/..down/key 0644 root key")
}

//proves:objects/items
func TestAnItemsModeAndOwnerGoBeforeThoseOfItsVolume(t *testing.T) {
	own, common := item("tls.key", "key"), item("tls.crt", "crt")
	own.Mode, own.User = new(int32(0o400)), new(int64(7))
	source := ofSecret("tls", own, common)
	source.Secret.DefaultMode, source.Secret.DefaultUser = new(int32(0o440)), new(int64(1000))
	mustShow(t, source, "crt 0440 1000 cert", "key 0400 7 key")

	whole := ofConfigMap("fresh")
	whole.ConfigMap.DefaultMode = new(int32(0o755))
	mustShow(t, whole, "a.conf 0755 root newer")
}

func TestTheErrorOfAMissingObjectHasItsNameAndAdvice(t *testing.T) {
	tests := map[string]corev1.VolumeSource{
		"secret default/db doesn't exist: create it, or set optional: true":         ofSecret("db"),
		"configMap default/db doesn't exist: create it, or set optional: true":      of(secret("tls"), configMap("db")),
		"secret default/tls has no key ca.crt: add it, or set optional: true":       ofSecret("tls", item("ca.crt", "ca")),
		"configMap default/app has no key c.conf: add it, or set optional: true":    of(configMap("app", item("c.conf", "c"))),
		"configMap default/fresh has no key b.conf: add it, or set optional: true":  ofConfigMap("fresh", item("a.conf", "a"), item("b.conf", "b")),
		"configMap default/nothing doesn't exist: create it, or set optional: true": ofConfigMap("nothing", item("a.conf", "a")),
		"secret default/nothing doesn't exist: create it, or set optional: true":    of(secret("nothing"), configMap("nothing")),
	}
	for want, source := range tests {
		mustFail(t, source, content.ErrMissing, want)
	}
}

//proves:objects/optional
func TestAnOptionalObjectMayBeMissing(t *testing.T) {
	object := ofSecret("db")
	object.Secret.Optional = new(true)
	mustShow(t, object)
	key := ofConfigMap("app", item("c.conf", "c"), item("a.conf", "a"))
	key.ConfigMap.Optional = new(true)
	mustShow(t, key, "a 0644 root a")
	one := configMap("db")
	one.ConfigMap.Optional = new(true)
	mustShow(t, of(one, secret("tls", item("tls.crt", "crt"))), "crt 0644 root cert")
}

func TestAnUnreadableObjectIsWaitedForThoughItIsOptional(t *testing.T) {
	source := ofSecret(unreadable)
	source.Secret.Optional = new(true)
	_, _, err := shown(t, cluster(), web(), source)
	if !errors.Is(err, content.ErrMissing) || !apierrors.IsForbidden(err) {
		t.Errorf("got %v", err)
	}
}

func TestTwoFilesCannotHaveOnePath(t *testing.T) {
	const below = "key a.conf of configMap default/app has the path etc/x/a, which lies below etc, the path of key "
	const cure = ": choose another path for one of them"
	tests := map[string]corev1.VolumeSource{
		"key a.conf of configMap default/app and key b.conf of configMap default/app both have the path etc/x: give each a path of its own": ofConfigMap("app", item("a.conf", "etc/x"), item("b.conf", "etc//x")),
		"key a.conf of configMap default/app and key tls.key of secret default/tls both have the path x: give each a path of its own":       of(configMap("app", item("a.conf", "x")), secret("tls", item("tls.key", "x"))),
		below + "b.conf of configMap default/app" + cure: ofConfigMap("app", item("a.conf", "etc/x/a"), item("b.conf", "etc")),
		below + "etc of configMap default/folder" + cure: of(configMap("folder"), configMap("app", item("a.conf", "etc/x/a"))),
	}
	for want, source := range tests {
		mustFail(t, source, nil, want)
	}
}

func TestAKeyGivesWayToALaterSource(t *testing.T) {
	mustShow(t, of(configMap("app"), configMap("fresh")), "a.conf 0644 root newer", "b.conf 0644 root b", "logo 0644 root \x00\x01")
	mustShow(t, of(configMap("fresh"), secret("tls", item("tls.crt", "a.conf"))), "a.conf 0644 root cert")
}

//proves:objects/items
func TestPathsLieInTheVolumeAndApartFromItsOwnNames(t *testing.T) {
	tests := map[string]string{
		"/etc/passwd":              "is absolute: it must be relative to the volume",
		"a/../../b":                "has .. in it: it must lie in the volume",
		"..":                       "has .. in it: it must lie in the volume",
		"..data":                   "begins with .., as only the volume's own names may: choose another",
		"./..data/a":               "begins with .., as only the volume's own names may: choose another",
		"":                         "names no file: add the file's name",
		"./":                       "names no file: add the file's name",
		"a\x00b":                   "has a zero byte in it: choose another",
		strings.Repeat("n", 256):   "is too long: choose a shorter one",
		strings.Repeat("n/", 2100): "is too long: choose a shorter one",
	}
	for path, want := range tests {
		mustFail(t, ofConfigMap("app", item("a.conf", path)), nil, fmt.Sprintf("placing key a.conf of configMap default/app: path %q %s", path, want))
	}
}

//proves:projected/shown
func TestOtherSourcesAreNotSupported(t *testing.T) {
	tests := map[string]corev1.VolumeSource{
		"a projected volume with a clusterTrustBundle is not supported by this version of Stowage":  of(corev1.VolumeProjection{ClusterTrustBundle: &corev1.ClusterTrustBundleProjection{}}),
		"a projected volume with a podCertificate is not supported by this version of Stowage":      of(corev1.VolumeProjection{PodCertificate: &corev1.PodCertificateProjection{}}),
		"a projected volume with a source of this type is not supported by this version of Stowage": of(corev1.VolumeProjection{}),
		"volume v isn't of a projected type: not supported by this version of Stowage":              {EmptyDir: &corev1.EmptyDirVolumeSource{}},
		"field spec.nodeName in a volume is not supported by this version of Stowage":               ofField("spec.nodeName"),
		"field metadata.name['x'] in a volume is not supported by this version of Stowage":          ofField("metadata.name['x']"),
		"resource limits.example.com/gpu in a volume is not supported by this version of Stowage":   ofResource("main", "limits.example.com/gpu", "1"),
		"resource cpu in a volume is not supported by this version of Stowage":                      ofResource("main", "cpu", "1"),
	}
	for want, source := range tests {
		mustFail(t, source, content.ErrNotSupported, want)
	}
}

func TestFourTypesAreMadeOfObjects(t *testing.T) {
	for _, source := range []corev1.VolumeSource{ofConfigMap("a"), ofSecret("a"), ofField("metadata.name"), of()} {
		if !content.IsProjected(corev1.Volume{VolumeSource: source}) {
			t.Errorf("%+v isn't", source)
		}
	}
	if content.IsProjected(corev1.Volume{VolumeSource: corev1.VolumeSource{HostPath: &corev1.HostPathVolumeSource{}}}) {
		t.Error("hostPath is")
	}
}
