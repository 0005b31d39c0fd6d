/** Checksums of blocks that leave memory: over the network and on disk. Stateless. */
package io.weft.integrity;
