// Command image writes the pinned Envoy API as one FileDescriptorSet.
//
// The Go module of Envoy's API holds no .proto text, but each of its generated packages embeds its
// descriptor. Importing them all (imports.go) fills protoregistry.GlobalFiles; this program writes
// what it finds there. Usage: go run . OUTPUT, or go generate to remake everything.
package main

//go:generate go run ./imports
//go:generate go run . ../envoy-api-1.40.0.binpb

import (
	"cmp"
	"fmt"
	"os"
	"slices"

	"google.golang.org/protobuf/proto"
	"google.golang.org/protobuf/reflect/protodesc"
	"google.golang.org/protobuf/reflect/protoreflect"
	"google.golang.org/protobuf/reflect/protoregistry"
	"google.golang.org/protobuf/types/descriptorpb"
)

func main() {
	if len(os.Args) != 2 {
		fmt.Fprintln(os.Stderr, "usage: go run . OUTPUT")
		os.Exit(2)
	}
	if err := write(os.Args[1]); err != nil {
		fmt.Fprintln(os.Stderr, "image:", err)
		os.Exit(1)
	}
}

func write(output string) error {
	set := inDependencyOrder(registeredFiles())
	image, err := proto.MarshalOptions{Deterministic: true}.Marshal(set)
	if err != nil {
		return err
	}
	fmt.Fprintf(os.Stderr, "image: %d files, %d bytes\n", len(set.File), len(image))
	return os.WriteFile(output, image, 0o644)
}

// registeredFiles sorts by path: the registry itself gives a different order on every run.
func registeredFiles() []protoreflect.FileDescriptor {
	var files []protoreflect.FileDescriptor
	protoregistry.GlobalFiles.RangeFiles(func(file protoreflect.FileDescriptor) bool {
		files = append(files, file)
		return true
	})
	slices.SortFunc(files, func(a, b protoreflect.FileDescriptor) int {
		return cmp.Compare(a.Path(), b.Path())
	})
	return files
}

// inDependencyOrder puts every file after the files that it imports, as readers of a
// FileDescriptorSet expect.
func inDependencyOrder(files []protoreflect.FileDescriptor) *descriptorpb.FileDescriptorSet {
	set := &descriptorpb.FileDescriptorSet{}
	seen := map[string]bool{}
	var visit func(file protoreflect.FileDescriptor)
	visit = func(file protoreflect.FileDescriptor) {
		if seen[file.Path()] {
			return
		}
		seen[file.Path()] = true
		for i := range file.Imports().Len() {
			visit(file.Imports().Get(i).FileDescriptor)
		}
		set.File = append(set.File, protodesc.ToFileDescriptorProto(file))
	}
	for _, file := range files {
		visit(file)
	}
	return set
}
