package io.weft.memory;

/** What lies behind an extent's address. */
public enum MemoryKind {
  /** A file in a memory file system (or in the folder that stands in for one). */
  SHARED_MEMORY("shared memory"),
  /** A file in one of the local folders: the spill tier, addressed in the same way. */
  DISK("disk"),
  /** Memory of this process alone, without a name or a file. Only of an arena that has some. */
  PRIVATE("private memory");

  private final String label;

  MemoryKind(String label) {
    this.label = label;
  }

  /** The name used in messages. */
  @Override
  public String toString() {
    return label;
  }
}
