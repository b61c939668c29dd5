package nodemanager

import (
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/utils/exec"
	"sigs.k8s.io/controller-runtime/pkg/client"

	stowagev1alpha1 "github.com/stowage-dev/stowage/api/v1alpha1"
	"github.com/stowage-dev/stowage/internal/device/filesystem"
	"github.com/stowage-dev/stowage/internal/nodemanager/drivers/socket/sockettest"
	"github.com/stowage-dev/stowage/internal/nodemanager/nodetest"
)

// imageBytes is enough for an ext4.
const imageBytes = 16 << 20

// killedVolumes are the volume types that an agent is killed with, as a pod asks for them.
var killedVolumes = map[string]corev1.VolumeSource{
	"emptyDir":           {EmptyDir: &corev1.EmptyDirVolumeSource{}},
	"emptyDir in memory": {EmptyDir: &corev1.EmptyDirVolumeSource{Medium: corev1.StorageMediumMemory}},
	"configMap":          {ConfigMap: &corev1.ConfigMapVolumeSource{LocalObjectReference: corev1.LocalObjectReference{Name: "settings"}}},
	"secret":             {Secret: &corev1.SecretVolumeSource{SecretName: "password"}},
	"downwardAPI": {DownwardAPI: &corev1.DownwardAPIVolumeSource{Items: []corev1.DownwardAPIVolumeFile{
		{Path: "part/color", FieldRef: &corev1.ObjectFieldSelector{FieldPath: "metadata.labels['color']"}},
	}}},
	"projected": {Projected: &corev1.ProjectedVolumeSource{Sources: []corev1.VolumeProjection{
		{Secret: &corev1.SecretProjection{LocalObjectReference: corev1.LocalObjectReference{Name: "password"}}},
		{ServiceAccountToken: &corev1.ServiceAccountTokenProjection{Path: "part/token"}},
	}}},
	"hostPath":           {HostPath: &corev1.HostPathVolumeSource{}},
	"local":              nodetest.ClaimVolume("", false).VolumeSource,
	"csi local":          nodetest.ClaimVolume("", false).VolumeSource,
	"csi image":          nodetest.ClaimVolume("", false).VolumeSource,
	"csi image as block": nodetest.ClaimVolume("", false).VolumeSource,
	killedShare:          nodetest.ClaimVolume("", false).VolumeSource,
	"nfs":                nodetest.ClaimVolume("", false).VolumeSource,
	killedDisk:           nodetest.ClaimVolume("", false).VolumeSource,
	killedEmptyDisk:      nodetest.ClaimVolume("", false).VolumeSource,
	killedBlockDisk:      nodetest.ClaimVolume("", false).VolumeSource,
	killedForeign:        nodetest.ClaimVolume("", false).VolumeSource,
	killedForeignBlock:   nodetest.ClaimVolume("", false).VolumeSource,
	killedForeignInline:  {CSI: &corev1.CSIVolumeSource{Driver: sockettest.Name, FSType: new("ext4")}},
}

// follows reports whether a volume shows what changes while its pod runs.
func follows(source corev1.VolumeSource) bool {
	return source.ConfigMap != nil || source.Secret != nil || source.DownwardAPI != nil || source.Projected != nil
}

// volumeOf is the volume of a killed node's pod, and the objects that belong to it.
func (n *killedNode) volumeOf(name string) (corev1.Volume, []client.Object) {
	volume := corev1.Volume{Name: "data", VolumeSource: killedVolumes[name]}
	if volume.HostPath != nil {
		volume.HostPath = &corev1.HostPathVolumeSource{Path: n.path("host")}
	}
	if volume.PersistentVolumeClaim == nil {
		return volume, nil
	}
	claim, object := nodetest.Bound()
	claim.Spec.AccessModes = []corev1.PersistentVolumeAccessMode{corev1.ReadWriteOncePod}
	object.Spec.AccessModes = claim.Spec.AccessModes
	switch name {
	case "local":
		object.Spec.PersistentVolumeSource = corev1.PersistentVolumeSource{Local: &corev1.LocalVolumeSource{Path: n.path("host")}}
	case "csi local":
		object.Spec.PersistentVolumeSource = n.csiSource(stowagev1alpha1.LayoutDirectory, "directory")
	case "csi image":
		object.Spec.PersistentVolumeSource = n.csiSource(stowagev1alpha1.LayoutImage, "image")
	case killedShare:
		object.Spec.PersistentVolumeSource = n.shareSource()
	case "nfs":
		object.Spec.PersistentVolumeSource = corev1.PersistentVolumeSource{NFS: &corev1.NFSVolumeSource{Server: killedServer, Path: "/directory"}}
	case killedDisk, killedEmptyDisk:
		object.Spec.PersistentVolumeSource = n.diskSource()
	case killedForeign, killedForeignBlock:
		object.Spec.PersistentVolumeSource = corev1.PersistentVolumeSource{CSI: &corev1.CSIPersistentVolumeSource{
			Driver: sockettest.Name, VolumeHandle: "directory", FSType: "ext4",
		}}
		if name == killedForeignBlock {
			object.Spec.VolumeMode = new(corev1.PersistentVolumeBlock)
		}
	case killedBlockDisk:
		object.Spec.PersistentVolumeSource = n.diskSource()
		object.Spec.VolumeMode = new(corev1.PersistentVolumeBlock)
	default:
		object.Spec.PersistentVolumeSource = n.csiSource(stowagev1alpha1.LayoutImage, "image")
		object.Spec.VolumeMode = new(corev1.PersistentVolumeBlock)
	}
	if n.isDisk() {
		return volume, append(n.attached(object), claim, object)
	}
	return volume, []client.Object{claim, object}
}

func (n *killedNode) csiSource(layout stowagev1alpha1.LocalLayout, name string) corev1.PersistentVolumeSource {
	return corev1.PersistentVolumeSource{CSI: &corev1.CSIPersistentVolumeSource{
		Driver: stowagev1alpha1.LocalDriver, VolumeHandle: name, FSType: "ext4", VolumeAttributes: map[string]string{
			stowagev1alpha1.PathAttribute: n.path("base", name), stowagev1alpha1.LayoutAttribute: string(layout),
		},
	}}
}

// prepare makes what the volumes' data is kept in, which outlives every pod.
func (n *killedNode) prepare(t *testing.T) {
	t.Helper()
	for _, dir := range []string{n.path("host", "part"), n.path("base", "directory", "part"), n.path("base", "image"), n.servers().PathOf(killedServer, "/directory/part")} {
		if err := os.MkdirAll(dir, 0o755); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(filepath.Join(dir, "kept"), []byte("precious"), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	image := n.path("base", "image", stowagev1alpha1.ImageFile)
	if err := os.WriteFile(image, nil, 0o600); err != nil {
		t.Fatal(err)
	}
	if err := os.Truncate(image, imageBytes); err != nil {
		t.Fatal(err)
	}
	if err := filesystem.NewFileSystems(exec.New()).Format(t.Context(), image, "ext4", imageBytes); err != nil {
		t.Fatal(err)
	}
}

// pod is the node's pod, with a container that sees the whole volume and a part of it.
func (n *killedNode) pod() (*corev1.Pod, []client.Object) {
	volume, objects := n.volumeOf(n.Volume)
	pod := nodetest.PodOnNode(nodetest.SomePod)
	pod.Labels = map[string]string{"color": n.value()}
	container := corev1.Container{Name: "main"}
	if strings.HasSuffix(n.Volume, " as block") {
		container.VolumeDevices = []corev1.VolumeDevice{{Name: volume.Name, DevicePath: "/dev/data"}}
	} else {
		container.VolumeMounts = []corev1.VolumeMount{
			{Name: volume.Name, MountPath: "/data"}, {Name: volume.Name, MountPath: "/part", SubPath: n.part()},
		}
	}
	pod.Spec.Volumes, pod.Spec.Containers = []corev1.Volume{volume}, []corev1.Container{container}
	pod.Spec.SecurityContext = &corev1.PodSecurityContext{FSGroup: new(int64(2000))}
	return pod, objects
}

// part is what the container asks for of the volume: a file where there are only files.
func (n *killedNode) part() string {
	switch n.Volume {
	case "configMap", "secret":
		return "key"
	default:
		return "part"
	}
}

func (n *killedNode) value() string { return "value-" + strconv.Itoa(n.Version) }

func (n *killedNode) settings() *corev1.ConfigMap {
	return &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Name: "settings"}, Data: map[string]string{"key": n.value(), n.value(): "of this version alone"}}
}

func (n *killedNode) password() *corev1.Secret {
	return &corev1.Secret{ObjectMeta: metav1.ObjectMeta{Name: "password"}, Data: map[string][]byte{"key": []byte(n.value())}}
}
