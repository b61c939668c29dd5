package filesystem

// Bits of the exit status of fsck: see fsck(8).
const (
	fsckMended  = 1
	fsckDamaged = 4
	fsckUnable  = 8
	// fsckStatuses is above all of them: from here on, fsck couldn't be started.
	fsckStatuses = 64
)

// kind is a type of file system.
type kind struct {
	// minimum is how many bytes it needs.
	minimum int64
	// format are the arguments that make one on a device, and formatImage in an
	// image, before the path. None reserves room for root. Nothing is discarded: that
	// would leave an image full of holes. The unit is 4 KiB, which every disk can
	// write directly.
	format, formatImage []string
	// grow is what makes it larger, and fsck what repairs it; "": mounting does.
	grow, fsck string
	// asksForPrivilege is true where a kernel grows it, while it is mounted, only for a
	// process that has CAP_SYS_RESOURCE.
	asksForPrivilege bool
}

const mebibyte = 1 << 20

// kinds are the types of file systems that Stowage makes.
var kinds = map[string]kind{
	"ext4": {
		// With less it has no journal.
		minimum: 8 * mebibyte,
		format:  []string{"-q", "-F", "-m0", "-b4096", "-I256", "-E", "nodiscard"},
		// Here the tables of inodes are made at once, which costs nothing. The kernel, which would
		// do it after the first mount, leaves holes in the image.
		formatImage: []string{"-q", "-F", "-m0", "-b4096", "-I256", "-E", "nodiscard,lazy_itable_init=0,lazy_journal_init=0"},
		grow:        "resize2fs", fsck: "fsck.ext4", asksForPrivilege: true,
	},
	"xfs": {
		minimum:     300 * mebibyte,
		format:      []string{"-q", "-K", "-s", "size=4096"},
		formatImage: []string{"-q", "-K", "-s", "size=4096"},
		grow:        "xfs_growfs",
	},
}
