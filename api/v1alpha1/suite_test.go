package v1alpha1_test

import (
	"fmt"
	"testing"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/client-go/rest"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/yaml"

	stowagev1alpha1 "github.com/stowage-dev/stowage/api/v1alpha1"
	"github.com/stowage-dev/stowage/test/harness/apiserver"
	"github.com/stowage-dev/stowage/test/harness/specs"
)

var (
	config *rest.Config
	// api is a client that refuses unknown fields, as kubectl does.
	api client.Client
)

func TestAPI(t *testing.T) {
	specs.Run(t, "API v1alpha1")
}

var _ = BeforeSuite(func() {
	server, err := apiserver.Start(apiserver.Options{})
	Expect(err).NotTo(HaveOccurred())
	DeferCleanup(server.Stop)
	config = server.Config

	plain, err := client.New(config, client.Options{})
	Expect(err).NotTo(HaveOccurred())
	Expect(stowagev1alpha1.AddToScheme(plain.Scheme())).To(Succeed())
	api = client.WithFieldValidation(plain, "Strict")
})

// object makes an object of this API from the YAML of its spec.
func object(kind, name, spec string) *unstructured.Unstructured {
	GinkgoHelper()
	var parsed map[string]any
	Expect(yaml.Unmarshal([]byte(spec), &parsed)).To(Succeed(), spec)
	made := &unstructured.Unstructured{Object: map[string]any{"spec": parsed}}
	made.SetGroupVersionKind(stowagev1alpha1.GroupVersion.WithKind(kind))
	made.SetName(name)
	return made
}

var made int

// created creates an object under a name of its own and removes it after the spec.
func created(ctx SpecContext, kind, spec string) *unstructured.Unstructured {
	GinkgoHelper()
	made++
	fresh := object(kind, fmt.Sprintf("object-%d", made), spec)
	Expect(api.Create(ctx, fresh)).To(Succeed())
	DeferCleanup(func(ctx SpecContext) { Expect(api.Delete(ctx, fresh)).To(Succeed()) })
	return fresh
}

// changed tries to give an object that exists another spec.
func changed(ctx SpecContext, existing *unstructured.Unstructured, spec string) error {
	GinkgoHelper()
	existing.Object["spec"] = object("", "", spec).Object["spec"]
	return api.Update(ctx, existing)
}
