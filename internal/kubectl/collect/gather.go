package collect

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"slices"
	"strings"

	appsv1 "k8s.io/api/apps/v1"
	coordinationv1 "k8s.io/api/coordination/v1"
	corev1 "k8s.io/api/core/v1"
	storagev1 "k8s.io/api/storage/v1"
	"k8s.io/client-go/kubernetes"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/yaml"

	stowagev1alpha1 "github.com/stowage-dev/stowage/api/v1alpha1"
	"github.com/stowage-dev/stowage/internal/kubectl/cluster"
)

const (
	// mostObjects bounds each kind; mostPods the pods whose logs are read.
	mostObjects = 2000
	mostPods    = 50
	// Of each log the last lines are read, up to so many bytes.
	logLines = 2000
	logBytes = 1 << 20
)

// stowage selects Stowage's own objects.
var stowage = client.MatchingLabels{"app.kubernetes.io/name": "stowage"}

// kind is one file of objects.
type kind struct {
	file    string
	list    client.ObjectList
	options []client.ListOption
}

// kinds are all that is collected. Secrets and ConfigMaps aren't among them.
func kinds() []kind {
	return []kind{
		{"storagebackends", &stowagev1alpha1.StorageBackendList{}, nil},
		{"nodedisks", &stowagev1alpha1.NodeDiskList{}, nil},
		{"nodevolumes", &stowagev1alpha1.NodeVolumeList{}, nil},
		{"noderecyclings", &stowagev1alpha1.NodeRecyclingList{}, nil},
		{"persistentvolumes", &corev1.PersistentVolumeList{}, nil},
		{"persistentvolumeclaims", &corev1.PersistentVolumeClaimList{}, nil},
		{"storageclasses", &storagev1.StorageClassList{}, nil},
		{"volumeattachments", &storagev1.VolumeAttachmentList{}, nil},
		{"csidrivers", &storagev1.CSIDriverList{}, nil},
		{"csistoragecapacities", &storagev1.CSIStorageCapacityList{}, nil},
		{"csinodes", &storagev1.CSINodeList{}, nil},
		{"nodes", &corev1.NodeList{}, nil},
		{"deployments", &appsv1.DeploymentList{}, []client.ListOption{stowage}},
		{"daemonsets", &appsv1.DaemonSetList{}, []client.ListOption{stowage}},
		{"pods", &corev1.PodList{}, []client.ListOption{stowage}},
		{"leases", &coordinationv1.LeaseList{}, []client.ListOption{client.InNamespace("stowage-system")}},
	}
}

// objects adds the objects of each kind, and returns Stowage's own pods.
func objects(ctx context.Context, c *cluster.Cluster, to *archive) ([]corev1.Pod, error) {
	c.MostObjects = min(c.MostObjects, mostObjects)
	var pods []corev1.Pod
	for _, k := range kinds() {
		if err := c.List(ctx, k.list, k.options...); err != nil {
			return nil, err
		}
		text, err := redacted(k.list)
		if err != nil {
			return nil, err
		}
		to.add("objects/"+k.file+".yaml", text)
		if list, is := k.list.(*corev1.PodList); is {
			pods = list.Items
		}
	}
	return pods, nil
}

// storageKinds are the kinds of objects whose events are collected, beside those of Stowage's
// own pods.
var storageKinds = []string{"PersistentVolume", "PersistentVolumeClaim", "StorageBackend", "NodeVolume", "NodeDisk", "NodeRecycling", "VolumeAttachment", "StorageClass", "Node"}

// events adds the events that are about storage, and those of Stowage's pods.
func events(ctx context.Context, c *cluster.Cluster, to *archive, pods []corev1.Pod) error {
	list := &corev1.EventList{}
	if err := c.List(ctx, list); err != nil {
		return err
	}
	list.Items = slices.DeleteFunc(list.Items, func(e corev1.Event) bool {
		of := e.InvolvedObject
		return !slices.Contains(storageKinds, of.Kind) && !strings.Contains(e.Reason, "Mount") && !strings.Contains(e.Reason, "Volume") &&
			!slices.ContainsFunc(pods, func(pod corev1.Pod) bool { return pod.Name == of.Name && pod.Namespace == of.Namespace })
	})
	text, err := redacted(list)
	if err == nil {
		to.add("objects/events.yaml", text)
	}
	return err
}

// redacted is a value as YAML, without secrets.
func redacted(value any) ([]byte, error) {
	text, err := json.Marshal(value)
	if err != nil {
		return nil, fmt.Errorf("writing JSON: %w", err)
	}
	var parsed any
	if err := json.Unmarshal(text, &parsed); err != nil {
		return nil, fmt.Errorf("reading JSON: %w", err)
	}
	if text, err = yaml.Marshal(redact(parsed)); err != nil {
		return nil, fmt.Errorf("writing YAML: %w", err)
	}
	return text, nil
}

// logs adds the last lines of each container of Stowage's pods, also of the run before the
// last restart. A log that can't be read has the error in its place.
func logs(ctx context.Context, from kubernetes.Interface, to *archive, pods []corev1.Pod) {
	if len(pods) > mostPods {
		to.left = append(to.left, fmt.Sprintf("logs of %d of %d pods", len(pods)-mostPods, len(pods)))
		pods = pods[:mostPods]
	}
	for i := range pods {
		pod := &pods[i]
		for _, s := range pod.Status.ContainerStatuses {
			name := "logs/" + pod.Name + "/" + s.Name
			to.add(name+".log", log(ctx, from, pod, s.Name, false))
			if s.RestartCount > 0 {
				to.add(name+".previous.log", log(ctx, from, pod, s.Name, true))
			}
		}
	}
}

func log(ctx context.Context, from kubernetes.Interface, pod *corev1.Pod, container string, previous bool) []byte {
	lines, most := int64(logLines), int64(logBytes)
	options := &corev1.PodLogOptions{Container: container, Previous: previous, TailLines: &lines, LimitBytes: &most, Timestamps: true}
	stream, err := from.CoreV1().Pods(pod.Namespace).GetLogs(pod.Name, options).Stream(ctx)
	if err != nil {
		return []byte("this log can't be read: " + err.Error() + "\n")
	}
	defer stream.Close()
	text := &bytes.Buffer{}
	if _, err := io.Copy(text, io.LimitReader(stream, logBytes)); err != nil && !errors.Is(err, io.EOF) {
		fmt.Fprintf(text, "\nthis log ends here: %v\n", err)
	}
	return []byte(redactText(text.String()))
}
