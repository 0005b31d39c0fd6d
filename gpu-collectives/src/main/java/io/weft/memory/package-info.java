/**
 * Memory that other processes can map: mapped segments, the arena of segments, and raw access.
 * Start with {@code SharedArena}; {@code SpillPolicy} states which memory it uses.
 *
 * <p>An {@code Extent} belongs to its allocator until it is freed. The arena owns its segments and
 * their files; closing it unmaps and deletes them. Every class is thread-safe unless its Javadoc
 * says otherwise.
 */
package io.weft.memory;
