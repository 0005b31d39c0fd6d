package io.weft.memory;

/**
 * A run of bytes in an arena. It belongs to its allocator until it is passed to {@link
 * SharedArena#free}. Two allocated extents never overlap.
 *
 * <p>Segment, offset and length mean the same to every process that maps the segment's file. The
 * address is valid in this process only.
 *
 * @param kind the kind of memory
 * @param segment the arena's number of the segment; never used twice by one arena
 * @param offset the first byte, counted from the start of the segment; a multiple of 64
 * @param length bytes; a multiple of 64
 * @param address the address of the first byte in this process; a multiple of 64
 */
public record Extent(MemoryKind kind, int segment, long offset, long length, long address) {}
