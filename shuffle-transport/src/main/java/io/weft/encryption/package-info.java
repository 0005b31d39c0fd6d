/**
 * Encrypts chunks on disk if {@code spark.io.encryption.enabled} is set. The writer of a chunk
 * encrypts it and its reader decrypts it to memory. Mappings, connections and migrations carry
 * ciphertext. Owns no memory outside the heap.
 */
package io.weft.encryption;
