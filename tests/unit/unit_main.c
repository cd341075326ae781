/* The main of every unit test that has none. */
#include "unit.h"

int main(int argc, char **argv)
{
    return unit_run(argc, argv);
}
