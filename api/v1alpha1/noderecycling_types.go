package v1alpha1

import (
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
)

// NodeRecycling is the record by which the manager asks one node's agent to empty
// the directory of a static volume whose reclaim policy is Recycle, once its claim
// is gone. Its name is the volume's. It is made and deleted by the manager; deleting
// one by hand stops the agent, and the manager decides anew.
//
// The agent says in status.asking when it is ready. The manager then decides once
// more, and only what it approves is done: so a decision is never older than the
// agent's question, however long the agent was away.
//
// +kubebuilder:object:root=true
// +kubebuilder:resource:scope=Cluster,shortName=nrec,categories=stowage
// +kubebuilder:subresource:status
// +kubebuilder:selectablefield:JSONPath=`.spec.nodeName`
// +kubebuilder:printcolumn:name="Node",type=string,JSONPath=`.spec.nodeName`
// +kubebuilder:printcolumn:name="Path",type=string,JSONPath=`.spec.path`
// +kubebuilder:printcolumn:name="Emptied",type=string,JSONPath=`.status.conditions[?(@.type=="Emptied")].status`
// +kubebuilder:printcolumn:name="Reason",type=string,JSONPath=`.status.conditions[?(@.type=="Emptied")].reason`
// +kubebuilder:printcolumn:name="Age",type=date,JSONPath=`.metadata.creationTimestamp`
type NodeRecycling struct {
	metav1.TypeMeta   `json:",inline"`
	metav1.ObjectMeta `json:"metadata,omitempty"`

	// spec is what the manager asks the node's agent for.
	// +required
	Spec NodeRecyclingSpec `json:"spec"`
	// status is what the node's agent did and saw.
	// +optional
	Status NodeRecyclingStatus `json:"status,omitzero"`
}

// NodeRecyclingList is a list of NodeRecyclings.
//
// +kubebuilder:object:root=true
type NodeRecyclingList struct {
	metav1.TypeMeta `json:",inline"`
	metav1.ListMeta `json:"metadata,omitempty"`
	// items are the recyclings.
	Items []NodeRecycling `json:"items"`
}

// NodeRecyclingSpec is what the manager asks the node's agent for. Only approved can
// change.
//
// +kubebuilder:validation:XValidation:rule="self.nodeName == oldSelf.nodeName",message="nodeName is immutable"
// +kubebuilder:validation:XValidation:rule="self.path == oldSelf.path",message="path is immutable"
// +kubebuilder:validation:XValidation:rule="self.volume == oldSelf.volume",message="volume is immutable"
// +kubebuilder:validation:XValidation:rule="self.claimRef == oldSelf.claimRef",message="claimRef is immutable"
type NodeRecyclingSpec struct {
	// nodeName is the node that the directory is on. Immutable.
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=253
	// +required
	NodeName string `json:"nodeName"`
	// path of the directory on the node. It must lie below the agent's
	// --recycle-root. Immutable.
	// +required
	Path AbsolutePath `json:"path"`
	// volume is the volume object as it was decided on: what was written to it since
	// ends the request. Immutable.
	// +required
	Volume VolumeVersion `json:"volume"`
	// claimRef is the claim that had the volume and is gone. Immutable.
	// +required
	ClaimRef ClaimReference `json:"claimRef"`
	// approved is the status.asking that the agent may go ahead with. Default: none.
	// A change holds at once.
	// +kubebuilder:validation:MaxLength=64
	// +optional
	Approved string `json:"approved,omitempty"`
}

// VolumeVersion is one state of one volume object.
type VolumeVersion struct {
	// uid of the volume object.
	// +kubebuilder:validation:XValidation:rule="self.matches('^[A-Za-z0-9-]{1,64}$')",message="uid must be the uid of a volume"
	// +required
	UID types.UID `json:"uid"`
	// resourceVersion of the volume object.
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=64
	// +required
	ResourceVersion string `json:"resourceVersion"`
}

// NodeRecyclingStatus is what the node's agent did and saw.
type NodeRecyclingStatus struct {
	// observedGeneration is the metadata.generation that this status is about.
	// +optional
	ObservedGeneration int64 `json:"observedGeneration,omitempty"`
	// asking is another name each time that the agent is ready to empty the directory,
	// and waits for the manager to approve of it. Absent: the agent isn't ready.
	// +kubebuilder:validation:MaxLength=64
	// +optional
	Asking string `json:"asking,omitempty"`
	// conditions are Emptied.
	// +listType=map
	// +listMapKey=type
	// +optional
	Conditions []metav1.Condition `json:"conditions,omitempty"`
}
