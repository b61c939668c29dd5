package controllers

import "sigs.k8s.io/controller-runtime/pkg/client"

// view is how a reconciler sees the cluster: its client reads the cache, and live the API
// server itself. A spec replaces either, and shows by it what is stale, or missing.
type view struct {
	client.Client
	live liveView
}

type liveView struct{ client.Reader }

// views are those of a world's reconcilers.
type views struct {
	claims, volumes, pods, classes, backends, audits, disks, locals, adopts, attachments, comparisons, storageClasses, capacities, refreshes, nodes, snapshots, groups, binds, groupBinds *view
}

func newView(w *world) *view { return &view{w, liveView{w.reads}} }

func newViews(w *world) views {
	return views{
		claims: newView(w), volumes: newView(w), pods: newView(w), classes: newView(w), backends: newView(w), audits: newView(w),
		disks: newView(w), locals: newView(w), adopts: newView(w), attachments: newView(w), comparisons: newView(w), storageClasses: newView(w),
		capacities: newView(w), refreshes: newView(w), snapshots: newView(w), groups: newView(w), binds: newView(w), groupBinds: newView(w),
		nodes: newNodesView(w, nodeIndexes{w}),
	}
}
