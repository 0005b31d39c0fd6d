/**
 * {@code weft doctor}: shows what this machine can do, and what Weft would do on it. Start at
 * {@code DoctorCommand}. Changes nothing on the machine and starts no threads.
 */
package io.weft.examples.doctor;
