/**
 * Memory that other processes may address: mapped segments, the arena made of them, and raw access.
 *
 * <p>An {@code Extent} belongs to whoever allocated it until it is freed to its arena; the arena
 * owns its segments and their files, and closing it unmaps and deletes them. Everything here is
 * thread-safe unless its own Javadoc says otherwise.
 */
package io.weft.memory;
