package bundle

import (
	"archive/zip"
	"io"
)

// firstDay is the first day that a zip archive can name, 1 January 1980.
const firstDay = 1<<5 | 1

// archive writes files as a zip archive that depends only on their names and
// bytes: no times, owners or permissions of this machine, and no extra fields.
// That they were made by Unix, as it says, makes hosts give the program its
// permission to run.
func archive(w io.Writer, list []entry) error {
	z := zip.NewWriter(w)
	for _, e := range list {
		//lint:ignore SA1019 Modified, which one is to use, adds an extra field with the zone's time.
		header := &zip.FileHeader{Name: e.name, Method: zip.Deflate, ModifiedDate: firstDay}
		header.SetMode(0o644)
		if e.exec {
			header.SetMode(0o755)
		}
		to, err := z.CreateHeader(header)
		if err != nil {
			return err
		}
		if err := copyFrom(to, e); err != nil {
			return err
		}
	}
	return z.Close()
}

func copyFrom(to io.Writer, e entry) error {
	from, err := e.open()
	if err != nil {
		return err
	}
	defer from.Close()
	_, err = io.Copy(to, from)
	return err
}
