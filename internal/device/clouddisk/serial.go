package clouddisk

import (
	"bufio"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
)

// errNoSerial says that a disk has no serial.
var errNoSerial = errors.New("it has no serial")

// Serials reads the serials of disks. The disk is open while its serial is read, so that no other can replace it.
type Serials interface {
	// SerialOf is the serial of a disk.
	SerialOf(disk *Disk) (string, error)
}

// SerialFolder has a file with the serial for each device, named as the kernel names it. It is for
// disks of a simulated cloud, which have no serial.
type SerialFolder string

// SerialOf implements Serials.
func (f SerialFolder) SerialOf(disk *Disk) (string, error) {
	serial, err := os.ReadFile(filepath.Join(string(f), disk.Name()))
	if errors.Is(err, os.ErrNotExist) {
		return "", errNoSerial
	}
	return strings.TrimSpace(string(serial)), err
}

// HardwareSerials reads the hardware, by way of the kernel, or of udev where the kernel doesn't know.
// On NVMe, only udev's rules know the name that the cloud gave a disk.
type HardwareSerials struct{}

// SerialOf implements Serials.
func (HardwareSerials) SerialOf(disk *Disk) (string, error) {
	page, err := os.ReadFile(filepath.Join(entryOf(disk.Number), "device", "vpd_pg80"))
	if err == nil {
		return serialInPage(page)
	}
	if !errors.Is(err, os.ErrNotExist) {
		return "", fmt.Errorf("reading SCSI page 0x80 of %s: %w", disk.Path(), err)
	}
	return serialInUdev("/run/udev/data/b" + disk.Number)
}

// serialInPage is the text of a SCSI unit's serial number page, behind its length.
func serialInPage(page []byte) (string, error) {
	const header, code = 4, 0x80
	if len(page) < header || page[1] != code {
		return "", errNoSerial
	}
	length := int(page[2])<<8 | int(page[3])
	text := strings.Trim(string(page[header:min(header+length, len(page))]), " \x00")
	if text == "" {
		return "", errNoSerial
	}
	return text, nil
}

// serialInUdev is what udev recorded of a device.
func serialInUdev(path string) (string, error) {
	file, err := os.Open(path)
	if errors.Is(err, os.ErrNotExist) {
		return "", errNoSerial
	}
	if err != nil {
		return "", err
	}
	defer file.Close()
	lines := bufio.NewScanner(file)
	for lines.Scan() {
		if serial, found := strings.CutPrefix(lines.Text(), "E:ID_SERIAL_SHORT="); found && serial != "" {
			return serial, nil
		}
	}
	if err := lines.Err(); err != nil {
		return "", err
	}
	return "", errNoSerial
}
