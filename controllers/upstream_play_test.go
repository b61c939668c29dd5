package controllers

import (
	"context"
	"fmt"
	"strings"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/stowage-dev/stowage/controllers/persistentvolumeclaim/provisioning"
	"github.com/stowage-dev/stowage/controllers/reconciler"
	"github.com/stowage-dev/stowage/internal/wake"
	. "github.com/stowage-dev/stowage/test/harness/fixture"
)

// maxCalls is how often a row's object is reconciled, until that writes nothing.
const maxCalls = 10

// stage is a cluster in which a row is played, with what the API server made of its
// names and UIDs.
type stage struct {
	*world
	row *tableRow
	// uids are the claims' own, by those that upstream writes.
	uids     map[types.UID]types.UID
	recorded []string
}

// play returns the differences from what the row expects.
func (r *tableRow) play() []string {
	if r.Problem != "" {
		return []string{"its code needs upstream's controller: " + r.Problem}
	}
	s := &stage{world: newWorld(reconciler.ClusterScope), row: r, uids: map[types.UID]types.UID{}}
	if err := s.set(); err != nil {
		return []string{"the API server refuses it: " + err.Error()}
	}
	s.call()
	changes, err := s.change()
	if err != nil {
		return []string{"the API server refuses it: " + err.Error()}
	}
	if changes {
		s.settle()
	}
	if len(s.problems()) == 0 {
		return nil
	}
	s.settle()
	return s.problems()
}

func (s *stage) set() error {
	node := Node("node1")
	if err := s.make(node); err != nil {
		return err
	}
	if err := s.makeClaims(s.row.Claims); err != nil {
		return err
	}
	for _, class := range s.row.Classes {
		if class = class.DeepCopy(); class.Provisioner == "" {
			class.Provisioner = provisioning.NoProvisioner
		}
		if err := s.make(class); err != nil {
			return err
		}
	}
	for _, pod := range s.row.Pods {
		pod = pod.DeepCopy()
		pod.Name, pod.Spec.Containers = valid(pod.Name), Pod("", "").Spec.Containers
		for i := range pod.Spec.Volumes {
			pod.Spec.Volumes[i].PersistentVolumeClaim.ClaimName = valid(pod.Spec.Volumes[i].PersistentVolumeClaim.ClaimName)
		}
		if err := s.make(pod); err != nil {
			return err
		}
	}
	return s.makeVolumes(s.row.Volumes)
}

// makeClaims makes claims: of two that have one name the last, as the API server has them.
func (s *stage) makeClaims(claims []*corev1.PersistentVolumeClaim) error {
	for i, claim := range claims {
		if i+1 < len(claims) && claims[i+1].Name == claim.Name {
			continue
		}
		claim = claim.DeepCopy()
		uid, class := claim.UID, claim.Spec.StorageClassName
		claim.Name, claim.UID, claim.ResourceVersion = valid(claim.Name), "", ""
		claim.Spec.VolumeName = s.volumeName(claim.Spec.VolumeName)
		for {
			made := claim.DeepCopy()
			if err := s.make(made); err != nil {
				return err
			}
			if (made.Spec.StorageClassName == nil) == (class == nil) {
				s.uids[uid] = made.UID
				break
			}
			// The default class of an earlier row is still in the API server's cache.
			update(s.world, made, func(made *corev1.PersistentVolumeClaim) { made.Finalizers = nil })
			s.delete(made)
		}
	}
	return nil
}

func (s *stage) makeVolumes(volumes []*corev1.PersistentVolume) error {
	for _, pv := range volumes {
		pv = s.translated(pv)
		deleted := pv.DeletionTimestamp
		pv.ResourceVersion, pv.DeletionTimestamp = "", nil
		if err := s.make(pv); err != nil {
			return err
		}
		if deleted != nil {
			s.delete(pv)
		}
	}
	return nil
}

// make creates an object with its status.
func (s *stage) make(object client.Object) error {
	ctx, whole := context.Background(), object.DeepCopyObject().(client.Object)
	if err := s.direct.Create(ctx, object); err != nil {
		return err
	}
	switch object.(type) {
	case *corev1.PersistentVolume, *corev1.PersistentVolumeClaim, *corev1.Pod:
		whole.SetUID(object.GetUID())
		whole.SetResourceVersion(object.GetResourceVersion())
		return s.direct.Status().Update(ctx, whole)
	}
	return nil
}

// call has the row's object reconciled until that writes nothing, or all.
func (s *stage) call() {
	var reconcile func(context.Context, ctrl.Request) (ctrl.Result, error)
	var of client.Object
	switch {
	case s.row.Call == "claim" && len(s.row.Claims) > 0:
		reconcile, of = s.claims.Reconcile, &corev1.PersistentVolumeClaim{ObjectMeta: metav1.ObjectMeta{Namespace: Namespace, Name: valid(s.row.Claims[0].Name)}}
	case s.row.Call == "volume" && len(s.row.Volumes) > 0:
		reconcile, of = s.volumes.Reconcile, s.translated(s.row.Volumes[0])
	default:
		s.settle()
		return
	}
	for range maxCalls {
		before := s.written
		s.feedIndex()
		_, _ = reconcile(context.Background(), wake.Request(of)) // an error is what some rows are about
		if s.written == before {
			return
		}
	}
}

// change does what the row's own code does, and reports whether that is anything.
func (s *stage) change() (bool, error) {
	r := s.row
	for _, name := range r.GoneVolumes {
		pv := s.translated(&corev1.PersistentVolume{ObjectMeta: metav1.ObjectMeta{Name: name}})
		if s.gone(pv) {
			continue
		}
		update(s.world, pv, func(pv *corev1.PersistentVolume) { pv.Finalizers = nil })
		s.delete(pv)
		s.settle()
	}
	for _, name := range r.GoneClaims {
		s.delete(&corev1.PersistentVolumeClaim{ObjectMeta: metav1.ObjectMeta{Namespace: Namespace, Name: valid(name)}})
	}
	if err := s.makeClaims(r.NewClaims); err != nil {
		return true, err
	}
	return len(r.GoneVolumes)+len(r.GoneClaims)+len(r.NewVolumes)+len(r.NewClaims) > 0, s.makeVolumes(r.NewVolumes)
}

// translated is a volume as the API server takes it: with valid names, the claims' own
// UIDs, and a disk that has a name.
func (s *stage) translated(pv *corev1.PersistentVolume) *corev1.PersistentVolume {
	pv = pv.DeepCopy()
	pv.Name = s.volumeName(pv.Name)
	switch {
	case pv.Spec.VolumeAttributesClassName != nil:
		// The API server takes no other source with a class.
		ofDriver("disks.example.com")(pv)
	case pv.Spec.GCEPersistentDisk != nil:
		pv.Spec.GCEPersistentDisk.PDName = "disk-of-" + pv.Name
	}
	if ref := pv.Spec.ClaimRef; ref != nil {
		ref.Name = valid(ref.Name)
		if uid := s.uids[ref.UID]; uid != "" {
			ref.UID = uid
		}
	}
	return pv
}

// volumeName is the name of a volume as the API server takes it. Those that are made for a
// claim have its UID in theirs.
func (s *stage) volumeName(name string) string {
	if uid, made := strings.CutPrefix(name, "pvc-"); made && s.uids[types.UID(uid)] != "" {
		return "pvc-" + string(s.uids[types.UID(uid)])
	}
	return valid(name)
}

// valid is a name as the API server takes it.
func valid(name string) string { return strings.ReplaceAll(strings.ToLower(name), "_", "-") }

// problems returns the differences from what the row expects.
func (s *stage) problems() []string {
	var problems []string
	claims := map[string]*corev1.PersistentVolumeClaim{}
	for _, object := range s.all(&corev1.PersistentVolumeClaimList{}) {
		claims[object.GetName()] = object.(*corev1.PersistentVolumeClaim)
	}
	for _, want := range s.row.WantClaims {
		name := valid(want.Name)
		problems = append(problems, s.compareClaim(name, claims[name], want)...)
		delete(claims, name)
	}
	for name := range claims {
		problems = append(problems, "claim "+name+" is there still")
	}
	volumes := map[string]*corev1.PersistentVolume{}
	for _, object := range s.all(&corev1.PersistentVolumeList{}) {
		volumes[object.GetName()] = object.(*corev1.PersistentVolume)
	}
	for _, want := range s.row.WantVolumes {
		want = s.translated(want)
		problems = append(problems, s.compareVolume(volumes[want.Name], want)...)
		delete(volumes, want.Name)
	}
	for name := range volumes {
		problems = append(problems, "volume "+name+" is there still")
	}
	return append(problems, s.compareEvents()...)
}

func (s *stage) compareEvents() []string {
	s.recorded = append(s.recorded, s.newEvents()...)
	var problems []string
	for _, want := range s.row.WantEvents {
		// The first two words; what follows is upstream's to say.
		kind, rest, _ := strings.Cut(want, " ")
		reason, _, _ := strings.Cut(rest, " ")
		if len(eventsWith(append([]string{}, s.recorded...), kind+" "+reason)) == 0 {
			problems = append(problems, fmt.Sprintf("no event %q, only %q", want, s.recorded))
		}
	}
	return problems
}
