/** Tests of blocks in memory of GPUs; the whole way is tested by applications. */
package io.weft.deviceblocks;
