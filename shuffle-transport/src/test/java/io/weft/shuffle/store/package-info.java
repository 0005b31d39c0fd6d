/** Tests of encrypted chunks. */
package io.weft.shuffle.store;
