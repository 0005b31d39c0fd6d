package io.weft.memory;

/**
 * A run of bytes in an arena, owned by whoever allocated it until it is given back to {@link
 * SharedArena#free}. Two extents that are out at the same time never overlap.
 *
 * <p>(segment, offset, length) means the same to every process that maps the segment's file;
 * address is valid in this process only.
 *
 * @param kind the tier it was taken from
 * @param segment the arena's number of the segment; never used twice by one arena
 * @param offset first byte, counted from the start of the segment; a multiple of 64
 * @param length bytes; a multiple of 64
 * @param address where the first byte is mapped in this process; a multiple of 64
 */
public record Extent(MemoryKind kind, int segment, long offset, long length, long address) {}
