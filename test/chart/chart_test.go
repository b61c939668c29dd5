// Package chart has Helm render the chart that `make chart` writes, and compares it with the overlays. It is a module of its
// own: nothing else needs Helm.
package chart

import (
	"bytes"
	"errors"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"reflect"
	"slices"
	"strings"
	"testing"

	"helm.sh/helm/v3/pkg/chart/loader"
	"helm.sh/helm/v3/pkg/chartutil"
	"helm.sh/helm/v3/pkg/engine"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/util/yaml"
)

const (
	root    = "../.."
	version = "v0.0.1"
	manager = "registry.example.com/manager:one"
	agent   = "registry.example.com/agent:two"
)

func TestMain(m *testing.M) {
	chart := exec.Command("make", "--directory="+root, "chart", "VERSION="+version, "IMG="+manager, "AGENT_IMG="+agent)
	chart.Env = append(os.Environ(), "MAKEFLAGS=", "MAKEOVERRIDES=")
	if output, err := chart.CombinedOutput(); err != nil {
		panic(string(output))
	}
	os.Exit(m.Run())
}

type objects map[string]*unstructured.Unstructured

func decode(t *testing.T, texts ...string) objects {
	t.Helper()
	all := objects{}
	for _, text := range texts {
		for reader := yaml.NewYAMLOrJSONDecoder(strings.NewReader(text), 4096); ; {
			object := &unstructured.Unstructured{}
			err := reader.Decode(object)
			if errors.Is(err, io.EOF) {
				break
			}
			if err != nil {
				t.Fatalf("%v in %s", err, text)
			}
			if len(object.Object) > 0 {
				all[object.GetKind()+" "+object.GetName()] = object
			}
		}
	}
	return all
}

// render is what Helm makes of the chart, without its CRDs.
func render(t *testing.T, values map[string]any) (objects, error) {
	t.Helper()
	chart, err := loader.Load(filepath.Join(root, "bin", "chart", "stowage"))
	if err != nil {
		t.Fatal(err)
	}
	release := chartutil.ReleaseOptions{Name: "stowage", Namespace: "stowage-system", IsInstall: true}
	merged, err := chartutil.ToRenderValues(chart, values, release, nil)
	if err != nil {
		return nil, err
	}
	rendered, err := engine.Render(chart, merged)
	var texts []string
	for name, text := range rendered {
		if strings.HasSuffix(name, ".yaml") {
			texts = append(texts, text)
		}
	}
	return decode(t, texts...), err
}

// overlay is what `make deploy` applies, without the namespace, which is the release's own.
func overlay(t *testing.T, name string) objects {
	t.Helper()
	kubectl := filepath.Join(t.TempDir(), "kubectl")
	applied := kubectl + ".yaml"
	if err := os.WriteFile(kubectl, []byte("#!/bin/sh\n[ \"$1\" != apply ] || exec cat >"+applied+"\n"), 0o700); err != nil {
		t.Fatal(err)
	}
	deploy := exec.CommandContext(t.Context(), "make", "--directory="+root, "deploy", "OVERLAY="+name, "KUBECTL="+kubectl,
		"VERSION="+version, "IMG="+manager, "AGENT_IMG="+agent)
	deploy.Env = append(os.Environ(), "MAKEFLAGS=", "MAKEOVERRIDES=")
	if output, err := deploy.CombinedOutput(); err != nil {
		t.Fatal(string(output))
	}
	text, err := os.ReadFile(applied)
	if err != nil {
		t.Fatal(err)
	}
	all := decode(t, string(text))
	delete(all, "Namespace stowage-system")
	return all
}

func TestTheChartInstallsWhatTheOverlaysInstall(t *testing.T) {
	crds, err := os.ReadFile(filepath.Join(root, "bin", "chart", "stowage", "crds", "stowage.yaml"))
	if err != nil {
		t.Fatal(err)
	}
	for scope, name := range map[string]string{"classes": "default", "cluster": "standalone"} {
		rendered, err := render(t, map[string]any{"scope": scope})
		if err != nil {
			t.Fatal(err)
		}
		for kind, object := range decode(t, string(crds)) {
			if rendered[kind] != nil {
				t.Errorf("%s is rendered, and Helm would delete it with the release", kind)
			}
			rendered[kind] = object
		}
		want := overlay(t, name)
		for object := range want {
			if rendered[object] == nil {
				t.Errorf("scope %s lacks %s", scope, object)
			} else if !reflect.DeepEqual(rendered[object].Object, want[object].Object) {
				t.Errorf("scope %s: %s is\n%v, in the overlay\n%v", scope, object, rendered[object].Object, want[object].Object)
			}
		}
		if len(rendered) != len(want) {
			t.Errorf("scope %s has %d objects, its overlay has %d", scope, len(rendered), len(want))
		}
	}
}

// template is the template of the pods of a workload, and its container.
func (o objects) template(t *testing.T, workload string) (pod, container map[string]any) {
	t.Helper()
	pod, _, err := unstructured.NestedMap(o[workload].Object, "spec", "template", "spec")
	if err != nil {
		t.Fatal(err)
	}
	return pod, pod["containers"].([]any)[0].(map[string]any)
}

func TestValuesReachThePods(t *testing.T) {
	rendered, err := render(t, map[string]any{
		"kubeletDir": "/var/lib/k0s/kubelet", "localBase": "/mnt/disks", "imagePullSecrets": []any{map[string]any{"name": "key"}},
		"manager":   map[string]any{"replicas": 3, "extraArgs": []any{"--zap-log-level=debug", `--nfs-mounts=/mnt/"a b"`}, "tolerations": []any{map[string]any{"operator": "Exists"}}},
		"nodeAgent": map[string]any{"extraArgs": []any{"--max-disks=3"}},
	})
	if err != nil {
		t.Fatal(err)
	}
	pod, container := rendered.template(t, "Deployment stowage-manager")
	args := container["args"].([]any)
	if !slices.Contains(args, any("--zap-log-level=debug")) || !slices.Contains(args, any(`--nfs-mounts=/mnt/"a b"`)) || args[0] != "--scope=classes" {
		t.Errorf("the manager's arguments are %q", args)
	}
	if len(pod["tolerations"].([]any)) != 1 || len(pod["imagePullSecrets"].([]any)) != 1 {
		t.Errorf("the manager's pods are %v", pod)
	}
	if replicas, _, _ := unstructured.NestedInt64(rendered["Deployment stowage-manager"].Object, "spec", "replicas"); replicas != 3 {
		t.Errorf("there are %d replicas", replicas)
	}
	pod, container = rendered.template(t, "DaemonSet stowage-node-agent")
	if args := container["args"].([]any); !slices.Contains(args, any("--max-disks=3")) {
		t.Errorf("the agent's arguments are %q", args)
	}
	for _, path := range []string{"/var/lib/k0s/kubelet", "/mnt/disks"} {
		inPod, inContainer := mentions(t, pod["volumes"], path), mentions(t, container, path)
		if inPod != 1 || inContainer != 2 {
			t.Errorf("%s is %d times in the volumes and %d times in the container", path, inPod, inContainer)
		}
	}
}

func TestSnapshotsAreBoundInScopeClusterUnlessValuesSayNo(t *testing.T) {
	for _, of := range []struct {
		scope          string
		wanted, expect bool
	}{{"cluster", true, true}, {"cluster", false, false}, {"classes", true, false}} {
		rendered, err := render(t, map[string]any{"scope": of.scope, "bindSnapshots": of.wanted})
		if err != nil {
			t.Fatal(err)
		}
		_, container := rendered.template(t, "Deployment stowage-manager")
		if args := container["args"].([]any); slices.Contains(args, any("--bind-snapshots")) != of.expect {
			t.Errorf("in scope %s with bindSnapshots %t the manager's arguments are %q", of.scope, of.wanted, args)
		}
	}
}

func mentions(t *testing.T, where any, text string) int {
	t.Helper()
	encoded, err := (&unstructured.Unstructured{Object: map[string]any{"apiVersion": "v1", "kind": "List", "x": where}}).MarshalJSON()
	if err != nil {
		t.Fatal(err)
	}
	return bytes.Count(encoded, []byte(`"`+text+`"`))
}

func TestWrongValuesAreRefused(t *testing.T) {
	for _, values := range []map[string]any{{"scope": "all"}, {"kubeletDir": "var"}, {"replicas": 3}, {"manager": map[string]any{"extraArgs": []any{"v=2"}}}} {
		if _, err := render(t, values); err == nil {
			t.Errorf("%v is taken", values)
		}
	}
}
