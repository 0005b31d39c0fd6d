/**
 * Encryption of chunks that lie on disk while {@code spark.io.encryption.enabled} is set. A chunk
 * is <i>sealed</i> when it is written and <i>opened</i> into memory by whoever reads it; what
 * carries it in between, a mapping, a connection or a migration, sees cipher text. Nothing here
 * owns memory that is not on the heap.
 */
package io.weft.encryption;
