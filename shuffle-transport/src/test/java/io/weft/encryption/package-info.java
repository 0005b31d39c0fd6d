/** Tests of encrypted chunks. */
package io.weft.encryption;
