package snapshots

import (
	"context"

	"google.golang.org/api/compute/v1"

	"github.com/stowage-dev/stowage/internal/gcemock/disks"
	"github.com/stowage-dev/stowage/internal/gcemock/engine"
	"github.com/stowage-dev/stowage/internal/gcemock/state"
	"github.com/stowage-dev/stowage/internal/gcemock/wire"
)

const statusImagePending = "PENDING"

// imageView is the image as a client sees it.
func imageView(r *wire.Request, row compute.Image) *compute.Image {
	row.Kind = "compute#image"
	row.SelfLink = r.Link(row.SelfLink)
	row.SourceDisk = r.Link(row.SourceDisk)
	row.SourceSnapshot = r.Link(row.SourceSnapshot)
	row.SourceImage = r.Link(row.SourceImage)
	return &row
}

func getImage(s *engine.Engine, r *wire.Request) (any, error) {
	return imageAt(s, r, r.Named("images", "image"))
}

func getImageFromFamily(s *engine.Engine, r *wire.Request) (any, error) {
	return imageAt(s, r, r.Named("images/family", "image"))
}

func imageAt(s *engine.Engine, r *wire.Request, path string) (any, error) {
	s.Lock()
	defer s.Unlock()
	row, found := s.FindImage(path)
	if !found {
		return nil, wire.NotFound(path)
	}
	return imageView(r, row), nil
}

func listImages(s *engine.Engine, r *wire.Request) (any, error) {
	s.Lock()
	defer s.Unlock()
	id := r.Scope() + "/images"
	var all []wire.Listed[*compute.Image]
	for _, path := range s.Images.Below(id) {
		row := s.Images.Rows[path]
		all = append(all, wire.Listed[*compute.Image]{Name: row.Name, Created: row.CreationTimestamp, Item: imageView(r, row)})
	}
	items, next, err := wire.Paged(r, all)
	if err != nil {
		return nil, err
	}
	return &compute.ImageList{Kind: "compute#imageList", Id: id, Items: items, NextPageToken: next, SelfLink: r.Link(id)}, nil
}

// insertImage keeps the content of a disk, snapshot or image as an image.
type insertImage struct {
	engine.Quick
	Image compute.Image
	From  disks.Source
	Force bool
}

func newInsertImage(r *wire.Request) (engine.Job, error) {
	var asked compute.Image
	err := r.IntoServed(&asked, "architecture", "description", "diskSizeGb", "family", "labels", "name", "sourceDisk",
		"sourceImage", "sourceSnapshot", "sourceType", "storageLocations")
	if err != nil {
		return nil, err
	}
	return &insertImage{Force: r.URL.Query().Get("forceCreate") == "true", Image: compute.Image{
		Name: asked.Name, Description: asked.Description, Family: asked.Family, Labels: asked.Labels,
		LabelFingerprint: wire.FingerprintOf(asked.Labels), Architecture: asked.Architecture,
		SourceDisk: wire.Reference(asked.SourceDisk, r.Project), SourceSnapshot: wire.Reference(asked.SourceSnapshot, r.Project),
		SourceImage: wire.Reference(asked.SourceImage, r.Project), SourceType: "RAW", DiskSizeGb: asked.DiskSizeGb,
		StorageLocations: asked.StorageLocations, Id: wire.NewID(), Status: statusImagePending,
		SelfLink: wire.ProjectPath(r.Project) + "/global/images/" + asked.Name,
	}}, nil
}

func (j *insertImage) Locks() []string { return []string{j.Image.SelfLink, j.From.Path} }

func (j *insertImage) Accept(s *engine.Engine) (engine.Target, error) {
	path := j.Image.SelfLink
	if err := wire.CheckName(j.Image.Name); err != nil {
		return engine.Target{}, err
	}
	if err := wire.CheckLabels(j.Image.Labels); err != nil {
		return engine.Target{}, err
	}
	if _, found := s.Images.Get(path); found {
		return engine.Target{}, wire.Exists(path)
	}
	if err := j.takeSource(s); err != nil {
		return engine.Target{}, err
	}
	j.Image.CreationTimestamp = s.Timestamp()
	s.Images.Put(path, j.Image)
	return engine.Target{Path: path, ID: j.Image.Id}, nil
}

// takeSource finds what the image is made from, and takes its size from there.
func (j *insertImage) takeSource(s *engine.Engine) error {
	form := compute.Disk{
		Name: j.Image.Name, SizeGb: j.Image.DiskSizeGb, SourceSnapshot: j.Image.SourceSnapshot, SourceImage: j.Image.SourceImage,
	}
	if disk, found := s.Disks.Get(j.Image.SourceDisk); found {
		// An image can be made of a disk of any type, anywhere.
		form.Type, form.Zone, form.Region, form.SelfLink = disk.Type, disk.Zone, disk.Region, disk.SelfLink
		if len(s.AttachmentsOf(disk.SelfLink)) > 0 && !j.Force {
			return wire.InUse(disk.SelfLink, s.AttachmentsOf(disk.SelfLink)[0].Instance)
		}
	}
	form.SourceDisk = j.Image.SourceDisk
	var err error
	if j.From, err = disks.SettleSource(s, &form); err != nil {
		return err
	}
	if j.From.IsNone() {
		return wire.Invalid("resource", j.Image.Name, "An image needs a source disk, snapshot or image.")
	}
	j.Image.DiskSizeGb, j.Image.SourceImage = form.SizeGb, form.SourceImage
	j.Image.SourceDiskId, j.Image.SourceSnapshotId, j.Image.SourceImageId = form.SourceDiskId, form.SourceSnapshotId, form.SourceImageId
	return nil
}

func (j *insertImage) Work(_ context.Context, s *engine.Engine) error {
	return j.From.CopyTo(s, j.Image.Id, j.Image.DiskSizeGb)
}

func (j *insertImage) Finish(s *engine.Engine) {
	j.Image.Status, j.Image.ArchiveSizeBytes = state.StatusReady, s.Contents.Stored(j.Image.Id)
	s.Images.Put(j.Image.SelfLink, j.Image)
}

func (j *insertImage) Undo(s *engine.Engine, _ string) {
	s.Images.Remove(j.Image.SelfLink)
	s.RemoveContent(j.Image.Id, j.Image.SelfLink)
}

// deleteImage removes an image. Disks made from it stay.
type deleteImage struct {
	engine.Quick
	Path string
	ID   uint64 `json:",string"`
}

func newDeleteImage(r *wire.Request) (engine.Job, error) {
	return &deleteImage{Path: r.Named("images", "image")}, nil
}

func (j *deleteImage) Locks() []string { return []string{j.Path} }

func (j *deleteImage) Accept(s *engine.Engine) (engine.Target, error) {
	row, found := s.Images.Get(j.Path)
	switch {
	case !found:
		return engine.Target{}, wire.NotFound(j.Path)
	case row.Status != state.StatusReady:
		return engine.Target{}, wire.NotReady(j.Path)
	}
	j.ID = row.Id
	return engine.Target{Path: j.Path, ID: row.Id}, nil
}

func (j *deleteImage) Begin(s *engine.Engine, _ string) error {
	if row, found := s.Images.Get(j.Path); !found || row.Id != j.ID {
		return wire.NotFound(j.Path)
	}
	return nil
}

func (j *deleteImage) Work(_ context.Context, s *engine.Engine) error { return s.Contents.Remove(j.ID) }

func (j *deleteImage) Finish(s *engine.Engine) { s.Images.Remove(j.Path) }
