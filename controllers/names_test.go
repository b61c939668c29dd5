package controllers

import (
	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/stowage-dev/stowage/controllers/reconciler"
	"github.com/stowage-dev/stowage/internal/liveread"
	. "github.com/stowage-dev/stowage/test/harness/fixture"
)

var _ = DescribeTable("A live read by a name that a user wrote",
	func(ctx SpecContext, name string, is error) {
		w := newWorld(reconciler.ClusterScope)
		w.create(Node("node-1"))
		live := liveread.Checked(w)

		err := live.Get(ctx, client.ObjectKey{Name: name}, &corev1.Node{})

		Expect(apierrors.ReasonForError(err)).To(Equal(apierrors.ReasonForError(is)))
		Expect(err == nil).To(Equal(is == nil))
	},
	Entry("finds the object that has it", "node-1", nil),
	Entry("finds nothing where no object has it", "node-2", notThere),
	Entry("finds nothing by part of a path", "a/b", notThere),
	Entry("finds nothing by a way up", "..", notThere),
	Entry("finds nothing by what would be decoded", "a%2fb", notThere),
	Entry("finds nothing by a name that is too long", string(make([]byte, 300)), notThere),
	Entry("fails without a name, as a mistake of the program", "", errInjected),
)

var notThere = apierrors.NewNotFound(corev1.Resource("nodes"), "")
