/** Tables on devices, on the double of libcuda. */
package io.weft.table;
