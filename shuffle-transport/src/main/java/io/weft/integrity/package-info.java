/**
 * Checksums of blocks where they leave memory: on the network path and on disk. Stateless; owns
 * nothing.
 */
package io.weft.integrity;
