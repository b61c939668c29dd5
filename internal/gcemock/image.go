package gcemock

import (
	"context"

	"google.golang.org/api/compute/v1"
)

const statusImagePending = "PENDING"

// imageView is the image as a client sees it.
func imageView(r *request, row compute.Image) *compute.Image {
	row.Kind = "compute#image"
	row.SelfLink = r.link(row.SelfLink)
	row.SourceDisk = r.link(row.SourceDisk)
	row.SourceSnapshot = r.link(row.SourceSnapshot)
	row.SourceImage = r.link(row.SourceImage)
	return &row
}

func getImage(s *Engine, r *request) (any, error) {
	return imageAt(s, r, r.named("images", "image"))
}

func getImageFromFamily(s *Engine, r *request) (any, error) {
	return imageAt(s, r, r.named("images/family", "image"))
}

func imageAt(s *Engine, r *request, path string) (any, error) {
	s.Lock()
	defer s.Unlock()
	row, found := s.findImage(path)
	if !found {
		return nil, errNotFound(path)
	}
	return imageView(r, row), nil
}

func listImages(s *Engine, r *request) (any, error) {
	s.Lock()
	defer s.Unlock()
	id := r.scope() + "/images"
	var all []listed[*compute.Image]
	for _, path := range s.images.below(id) {
		row := s.images.rows[path]
		all = append(all, listed[*compute.Image]{name: row.Name, created: row.CreationTimestamp, item: imageView(r, row)})
	}
	items, next, err := paged(r, all)
	if err != nil {
		return nil, err
	}
	return &compute.ImageList{Kind: "compute#imageList", Id: id, Items: items, NextPageToken: next, SelfLink: r.link(id)}, nil
}

// insertImage keeps the content of a disk, snapshot or image as an image.
type insertImage struct {
	quick
	Image compute.Image
	From  source
	Force bool
}

func newInsertImage(r *request) (job, error) {
	var asked compute.Image
	err := r.intoServed(&asked, "architecture", "description", "diskSizeGb", "family", "labels", "name", "sourceDisk",
		"sourceImage", "sourceSnapshot", "sourceType", "storageLocations")
	if err != nil {
		return nil, err
	}
	return &insertImage{Force: r.URL.Query().Get("forceCreate") == "true", Image: compute.Image{
		Name: asked.Name, Description: asked.Description, Family: asked.Family, Labels: asked.Labels,
		LabelFingerprint: fingerprintOf(asked.Labels), Architecture: asked.Architecture,
		SourceDisk: reference(asked.SourceDisk, r.project), SourceSnapshot: reference(asked.SourceSnapshot, r.project),
		SourceImage: reference(asked.SourceImage, r.project), SourceType: "RAW", DiskSizeGb: asked.DiskSizeGb,
		StorageLocations: asked.StorageLocations, Id: newID(), Status: statusImagePending,
		SelfLink: projectPath(r.project) + "/global/images/" + asked.Name,
	}}, nil
}

func (j *insertImage) Locks() []string { return []string{j.Image.SelfLink, j.From.Path} }

func (j *insertImage) Accept(s *Engine) (target, error) {
	path := j.Image.SelfLink
	if err := checkName(j.Image.Name); err != nil {
		return target{}, err
	}
	if err := checkLabels(j.Image.Labels); err != nil {
		return target{}, err
	}
	if _, found := s.images.get(path); found {
		return target{}, errExists(path)
	}
	if err := j.takeSource(s); err != nil {
		return target{}, err
	}
	j.Image.CreationTimestamp = s.timestamp()
	s.images.put(path, j.Image)
	return target{path: path, id: j.Image.Id}, nil
}

// takeSource finds what the image is made from, and takes its size from there.
func (j *insertImage) takeSource(s *Engine) error {
	form := compute.Disk{
		Name: j.Image.Name, SizeGb: j.Image.DiskSizeGb, SourceSnapshot: j.Image.SourceSnapshot, SourceImage: j.Image.SourceImage,
	}
	if disk, found := s.disks.get(j.Image.SourceDisk); found {
		// An image can be made of a disk of any type, anywhere.
		form.Type, form.Zone, form.Region, form.SelfLink = disk.Type, disk.Zone, disk.Region, disk.SelfLink
		if len(s.attachmentsOf(disk.SelfLink)) > 0 && !j.Force {
			return errInUse(disk.SelfLink, s.attachmentsOf(disk.SelfLink)[0].Instance)
		}
	}
	form.SourceDisk = j.Image.SourceDisk
	var err error
	if j.From, err = settleSource(s, &form); err != nil {
		return err
	}
	if j.From.isNone() {
		return errInvalid("resource", j.Image.Name, "An image needs a source disk, snapshot or image.")
	}
	j.Image.DiskSizeGb, j.Image.SourceImage = form.SizeGb, form.SourceImage
	j.Image.SourceDiskId, j.Image.SourceSnapshotId, j.Image.SourceImageId = form.SourceDiskId, form.SourceSnapshotId, form.SourceImageId
	return nil
}

func (j *insertImage) Work(_ context.Context, s *Engine) error {
	return j.From.copyTo(s, j.Image.Id, j.Image.DiskSizeGb)
}

func (j *insertImage) Finish(s *Engine) {
	j.Image.Status, j.Image.ArchiveSizeBytes = statusReady, s.contents.stored(j.Image.Id)
	s.images.put(j.Image.SelfLink, j.Image)
}

func (j *insertImage) Undo(s *Engine, _ string) {
	s.images.remove(j.Image.SelfLink)
	s.removeContent(j.Image.Id, j.Image.SelfLink)
}

// deleteImage removes an image. Disks made from it stay.
type deleteImage struct {
	quick
	Path string
	ID   uint64 `json:",string"`
}

func newDeleteImage(r *request) (job, error) {
	return &deleteImage{Path: r.named("images", "image")}, nil
}

func (j *deleteImage) Locks() []string { return []string{j.Path} }

func (j *deleteImage) Accept(s *Engine) (target, error) {
	row, found := s.images.get(j.Path)
	switch {
	case !found:
		return target{}, errNotFound(j.Path)
	case row.Status != statusReady:
		return target{}, errNotReady(j.Path)
	}
	j.ID = row.Id
	return target{path: j.Path, id: row.Id}, nil
}

func (j *deleteImage) Begin(s *Engine, _ string) error {
	if row, found := s.images.get(j.Path); !found || row.Id != j.ID {
		return errNotFound(j.Path)
	}
	return nil
}

func (j *deleteImage) Work(_ context.Context, s *Engine) error { return s.contents.remove(j.ID) }

func (j *deleteImage) Finish(s *Engine) { s.images.remove(j.Path) }
