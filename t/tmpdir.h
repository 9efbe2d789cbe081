/* SPDX-License-Identifier: MIT */
/*
 * t/tmpdir.h - a place for files, for tests written in C.
 */
#ifndef T_TMPDIR_H
#define T_TMPDIR_H

/** tmpdir() - make a directory that goes away at exit with all that is in it;
 * once a program.  Return: its path; bails when there can be none */
const char *tmpdir(void);

#endif /* T_TMPDIR_H */
