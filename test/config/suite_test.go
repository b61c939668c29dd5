// Package config_test applies what lies in config/ to a real API server, as
// users do, and tests what the identities made there may and may not do.
package config_test

import (
	"bytes"
	"context"
	"os/exec"
	"path/filepath"
	"testing"
	"time"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	utilyaml "k8s.io/apimachinery/pkg/util/yaml"
	"k8s.io/client-go/kubernetes/scheme"
	"k8s.io/client-go/rest"
	"sigs.k8s.io/controller-runtime/pkg/client"

	stowagev1alpha1 "github.com/stowage-dev/stowage/api/v1alpha1"
	"github.com/stowage-dev/stowage/test/harness/apiserver"
	"github.com/stowage-dev/stowage/test/harness/specs"
)

// settled is how long the API server may take until it knows what was applied.
const settled = time.Minute

var (
	server *apiserver.Server
	admin  client.Client
)

func TestConfig(t *testing.T) {
	specs.Run(t, "config")
}

var _ = BeforeSuite(func() {
	var err error
	server, err = apiserver.Start(apiserver.Options{WithoutCRDs: true})
	Expect(err).NotTo(HaveOccurred())
	DeferCleanup(server.Stop)
	for _, add := range []func(*runtime.Scheme) error{stowagev1alpha1.AddToScheme, apiextensionsv1.AddToScheme} {
		Expect(add(scheme.Scheme)).To(Succeed())
	}
	admin = connect(server.Config)
})

func connect(config *rest.Config) client.Client {
	GinkgoHelper()
	connected, err := client.New(config, client.Options{Scheme: scheme.Scheme})
	Expect(err).NotTo(HaveOccurred())
	return connected
}

// folder is the absolute path of a folder of config/.
func folder(name ...string) string {
	return filepath.Join(append([]string{apiserver.Repository(), "config"}, name...)...)
}

// texts are what folders were built to. Many specs read the same few, and each takes seconds.
var texts = map[string][]byte{}

// built is what `kubectl kustomize` makes of a folder.
func built(ctx context.Context, folder string) []*unstructured.Unstructured {
	GinkgoHelper()
	text, known := texts[folder]
	if !known {
		binaries, err := apiserver.Binaries()
		Expect(err).NotTo(HaveOccurred())
		kustomize := exec.CommandContext(ctx, filepath.Join(binaries, "kubectl"), "kustomize", folder)
		kustomize.Stderr = GinkgoWriter
		text, err = kustomize.Output()
		Expect(err).NotTo(HaveOccurred(), folder)
		texts[folder] = text
	}
	return decoded(text)
}

// decoded are the objects of a stream of YAML.
func decoded(text []byte) []*unstructured.Unstructured {
	var objects []*unstructured.Unstructured
	for reader := utilyaml.NewYAMLOrJSONDecoder(bytes.NewReader(text), 4096); ; {
		object := &unstructured.Unstructured{}
		if reader.Decode(object) != nil {
			return objects
		}
		objects = append(objects, object)
	}
}

// apply applies objects as `kubectl apply --server-side` does: a field that the
// API doesn't know is an error. CRDs are waited for.
func apply(ctx context.Context, objects []*unstructured.Unstructured) {
	GinkgoHelper()
	Expect(objects).NotTo(BeEmpty())
	for _, object := range objects {
		Eventually(func() error {
			return admin.Apply(ctx, client.ApplyConfigurationFromUnstructured(object.DeepCopy()),
				client.ForceOwnership, client.FieldOwner("test"))
		}).WithTimeout(settled).Should(Succeed(), "%s %s", object.GetKind(), object.GetName())
	}
}

// found is the object of a kind and name among those built, as its Go type.
func found[T any](objects []*unstructured.Unstructured, kind, name string) T {
	GinkgoHelper()
	var typed T
	for _, object := range objects {
		if object.GetKind() == kind && object.GetName() == name {
			Expect(runtime.DefaultUnstructuredConverter.FromUnstructuredWithValidation(object.Object, &typed, true)).To(Succeed())
			return typed
		}
	}
	Fail("there is no " + kind + " " + name)
	return typed
}
