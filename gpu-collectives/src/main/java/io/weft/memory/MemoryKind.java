package io.weft.memory;

/** The kind of memory at an extent's address. */
public enum MemoryKind {
  /** A file in a memory file system, or in the folder that replaces one. */
  SHARED_MEMORY("shared memory"),
  /** A file in one of the local folders: the spill tier, addressed in the same way. */
  DISK("disk"),
  /**
   * Memory of this process alone, without a name or a file; only in an arena with private memory.
   */
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
