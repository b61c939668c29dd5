package apidata_test

import (
	"io/fs"
	"os"
	"slices"
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"

	"github.com/stowage-dev/stowage/internal/nodemanager/content"
	"github.com/stowage-dev/stowage/internal/nodemanager/volumes"
)

// mounting is a pod whose containers each mount volumes: name:path, with spaces between.
func mounting(containers ...string) *corev1.Pod {
	pod := &corev1.Pod{}
	for _, mounts := range containers {
		var container corev1.Container
		for mount := range strings.FieldsSeq(mounts) {
			name, path, _ := strings.Cut(mount, ":")
			container.VolumeMounts = append(container.VolumeMounts, corev1.VolumeMount{Name: name, MountPath: path})
		}
		pod.Spec.Containers = append(pod.Spec.Containers, container)
	}
	return pod
}

// foldersIn is the folders of a volume that aren't its writer's.
func foldersIn(t *testing.T, dir string) []string {
	t.Helper()
	var folders []string
	err := fs.WalkDir(os.DirFS(dir), ".", func(path string, entry fs.DirEntry, err error) error {
		switch {
		case err != nil || !entry.IsDir() || path == ".":
			return err
		case strings.HasPrefix(path, ".."):
			return fs.SkipDir
		}
		folders = append(folders, path)
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
	return folders
}

func TestFoldersAreMadeOnWhichOtherVolumesAreMounted(t *testing.T) {
	tests := map[string]struct {
		pod  *corev1.Pod
		want []string
	}{
		"none":                          {mounting("shown:/etc/app data:/var"), nil},
		"in it":                         {mounting("data:/etc/app/data shown:/etc/app/"), []string{"data"}},
		"deep in it":                    {mounting("shown:/etc data:/etc/a/b"), []string{"a", "a/b"}},
		"in the one in it":              {mounting("shown:/etc data:/etc/a more:/etc/a/b"), []string{"a"}},
		"of a similar name":             {mounting("shown:/etc data:/etc-data more:/etc/a more:/etc/a-b"), []string{"a", "a-b"}},
		"of another container":          {mounting("shown:/etc", "data:/etc/a"), nil},
		"at several places":             {mounting("shown:/etc data:/etc/a", "shown:/opt data:/opt/b"), []string{"a", "b"}},
		"with its writer's own name":    {mounting("shown:/etc data:/etc/..data/x"), nil},
		"over all of the container":     {mounting("shown:/ data:/data"), []string{"data"}},
		"in the place of what it shows": {mounting("shown:/etc/app data:/etc/app/file"), []string{"file"}},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			v := newVolume(t, false)
			spec := volumes.Spec{Volume: corev1.Volume{Name: "shown"}, Pod: test.pod, Files: content.Files{"file": {Mode: 0o644}}}
			for range 2 {
				if err := v.Publish(t.Context(), spec, v.dir); err != nil {
					t.Fatal(err)
				}
				if got := foldersIn(t, v.dir); !slices.Equal(got, test.want) {
					t.Errorf("folders: %q", got)
				}
			}
		})
	}
}
