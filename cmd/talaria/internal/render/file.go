package render

import (
	"errors"
	"fmt"
	"io/fs"
	"maps"
	"mime"
	"os"
	"path/filepath"
	"slices"
	"strings"
)

// extensions are those that package mime has several of, or none, depending on
// the machine.
var extensions = map[string]string{
	"image/png": ".png", "image/jpeg": ".jpg", "image/gif": ".gif", "image/webp": ".webp", "image/svg+xml": ".svg",
	"audio/wav": ".wav", "audio/x-wav": ".wav", "audio/mpeg": ".mp3", "audio/ogg": ".ogg", "audio/flac": ".flac",
	"application/pdf": ".pdf", "application/zip": ".zip", "application/gzip": ".gz", "application/json": ".json",
	"text/plain": ".txt", "text/csv": ".csv", "text/html": ".html", "application/octet-stream": ".bin",
}

// plain are the extensions of files that no system runs when they are opened,
// next to those of extensions.
var plain = []string{".md", ".xml", ".yaml", ".yml", ".toml", ".log", ".tsv", ".jsonl", ".jpeg", ".bmp", ".tif", ".tiff", ".avif", ".ico",
	".mp4", ".m4a", ".aac", ".webm", ".mov", ".opus", ".tar", ".tgz", ".bz2", ".xz", ".zst", ".7z", ".parquet", ".sqlite", ".dat", ".docx", ".xlsx", ".pptx", ".odt", ".ods"}

// harmless reports whether a file with that extension may come from a server.
func harmless(extension string) bool {
	extension = strings.ToLower(extension)
	return slices.Contains(plain, extension) || slices.Contains(slices.Collect(maps.Values(extensions)), extension)
}

// save writes data into a new file, whose name follows from name, which a
// server may have chosen, and is made harmless. Nothing is overwritten.
func save(dir, name, mediaType string, data []byte) (string, error) {
	stem, extension := fileName(name, mediaType)
	for i := 1; ; i++ {
		path := filepath.Join(dir, stem+extension)
		if i > 1 {
			path = filepath.Join(dir, fmt.Sprintf("%s-%d%s", stem, i, extension))
		}
		f, err := os.OpenFile(path, os.O_WRONLY|os.O_CREATE|os.O_EXCL, 0o644)
		if errors.Is(err, fs.ErrExist) && i < 10_000 {
			continue
		}
		if err != nil {
			return "", err
		}
		_, err = f.Write(data)
		return path, errors.Join(err, f.Close())
	}
}

// fileName returns a harmless name: the last element of a path or URI, of
// letters and digits, with the extension of the type, or its own. An extension that
// could make a system run the file, or that is not known, is not the last one.
func fileName(name, mediaType string) (stem, extension string) {
	kind, _, err := mime.ParseMediaType(mediaType)
	if err == nil {
		extension = extensions[kind]
		if list, err := mime.ExtensionsByType(kind); extension == "" && err == nil && len(list) > 0 && harmless(list[0]) {
			extension = list[0]
		}
	}
	name = strings.TrimRight(name, "/")
	name = name[strings.LastIndexAny(name, `/\`)+1:]
	name, _, _ = strings.Cut(name, "?")
	stem = strings.Map(func(r rune) rune {
		switch {
		case r >= 'a' && r <= 'z', r >= 'A' && r <= 'Z', r >= '0' && r <= '9', r == '-', r == '_', r == '.':
			return r
		}
		return '_'
	}, name)
	stem = strings.Trim(stem, "._-")
	if own := filepath.Ext(stem); own != "" && harmless(own) && (extension == "" || extension == ".bin" || strings.EqualFold(own, extension)) {
		stem, extension = strings.TrimSuffix(stem, own), own
	}
	if stem == "" {
		stem = "data"
	}
	if extension == "" {
		extension = ".bin"
	}
	return stem[:min(len(stem), 80)], extension[:min(len(extension), 20)]
}
