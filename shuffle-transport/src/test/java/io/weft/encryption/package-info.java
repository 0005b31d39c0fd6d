/** Tests of sealed chunks. */
package io.weft.encryption;
