package snapshotbinding

import (
	snapshotv1 "github.com/kubernetes-csi/external-snapshotter/client/v8/apis/volumesnapshot/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/utils/ptr"
	"sigs.k8s.io/controller-runtime/pkg/client"
)

// Kind has the words of VolumeSnapshots, or those of VolumeGroupSnapshots.
type Kind struct {
	Name string
	// Class and Classes are an empty class and an empty list of classes, and DefaultClass the annotation of the default one.
	Class        client.Object
	Classes      client.ObjectList
	DefaultClass string
	// Handle and Volume are the fields of a content with what is in the storage.
	Handle, Volume string
	// Secret has the words about the Secret that deletes a snapshot.
	Secret  Secret
	Reasons Reasons
	// Making, Created and Ready are events. NoClass is the text about a name that no class has, and Restored that about a claim
	// that keeps a deleted snapshot.
	Making, Created, Ready News
	NoClass, Restored      string
}

// Secret has what the parameters of a class that name the Secret begin with, and the variables in them, and the annotations that
// record it.
type Secret struct{ Parameters, Variables, Name, Namespace string }

// Reasons are those of events about what a person has to change.
type Reasons struct {
	CreationFailed, NoClass, NoDefaultClass, BindFailed string
	Missing, Mismatch, ContentMisbound, Misbound        string
}

// News is an event that says that all goes well, and its text.
type News struct{ Event, Text string }

// Snapshot is a VolumeSnapshot or a VolumeGroupSnapshot, and the fields by which it is bound.
type Snapshot struct {
	client.Object
	Class **string
	// Given is the name of the content that a person made, and Made that of the one that is made else.
	Given *string
	Made  string
	// These are fields of the status. After a write, the object has another status.
	Bound   **string
	Ready   **bool
	Created **metav1.Time
	Error   **snapshotv1.VolumeSnapshotError
	// Size is nil for a VolumeGroupSnapshot.
	Size **resource.Quantity
}

// ContentName is the name of the content that a snapshot has, or gets.
func (s Snapshot) ContentName() string { return ptr.Deref(s.Given, s.Made) }

// IsBound reports whether the status names a content.
func (s Snapshot) IsBound() bool { return ptr.Deref(*s.Bound, "") != "" }

// IsComplete reports whether a snapshot is bound and ready.
func (s Snapshot) IsComplete() bool { return ptr.Deref(*s.Ready, false) && s.IsBound() }
